"""What Spark keeps for a stateful operator, from the progress of its query."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class State:
    """Rows and bytes that a stateful operator keeps, and the event time up to which it is
    complete.
    """

    rows: float
    bytes: float
    watermark_at: float | None


def state_of(query: StreamingQuery) -> State | None:
    """The state after the query's last batch; None before the first."""
    progress = query.lastProgress
    if progress is None or not progress.stateOperators:
        return None
    kept, until = progress.stateOperators, progress.eventTime.get("watermark")
    return State(
        float(sum(s.numRowsTotal for s in kept)),
        float(sum(s.memoryUsedBytes for s in kept)),
        datetime.fromisoformat(until.replace("Z", "+00:00")).timestamp() if until else None,
    )
