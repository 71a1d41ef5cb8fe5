"""The columns that a pipeline adds to its users' own, named once: the driver and the workers must
mean the same.
"""

from __future__ import annotations

STAMP = "_at"
"""Carries an event's arrival instant (UTC seconds) through the pipeline."""
OUT, TO = "_out", "_to"
"""The named output that an event was given for, and the channel it is written to."""
OPERATOR, ERROR, EVENT = "_operator", "_error", "_event"
"""Of a dead letter: where it went wrong and how, and the event itself."""
KEY, REPLICA = "_key", "_replica"
"""What a grouping looks at, and where it sends an event."""
UNPARSED = "_unparsed"
"""Describes a source's record that does not parse; null for all others."""

RESERVED = (STAMP, OUT, TO, OPERATOR, ERROR, EVENT, KEY, REPLICA, UNPARSED)
