"""The event engines: every event of a record-at-a-time or micro-batch pipeline, compiled."""
