"""The fluid engine: rates and queueing formulas instead of events."""
