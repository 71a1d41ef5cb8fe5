"""What a task needs of its operator (it travels with every batch), and what stops a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretide.spark.worker.columns import STAMP
from foretide.spark.worker.meter import Report

# Imports numba, which a worker needs only for a grouping that compiles code.
if TYPE_CHECKING:
    from foretide.balance.grouping import CostLearner

MARK = "\u2063foretide\u2063"
"""Stands before and after our own sentence inside Spark's long traces."""

Body = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Add = Callable[[dict[int, Report]], None]
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Work:
    """All that a task needs of its operator; it travels with every batch. ``arrived_at`` stamps
    events that carry no stamp; ``progress`` is the prefix of the files for a task's progress. One
    input in ``follow_every`` is followed until all that came of it is done (0: none). An event
    older than ``timeout_s`` when its turn comes is dropped, and so is the share ``shed`` of the
    events, oldest first.
    """

    operator: str
    function: Callable[..., Any]
    schema: pa.Schema
    columns: Mapping[str | None, frozenset[str]]
    diverts: bool = False
    sample_every: int = 10
    learner: CostLearner | None = None
    arrived_at: float = 0.0
    progress: str | None = None
    follow_every: int = 0
    timeout_s: float | None = None
    shed: float = 0.0

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The written columns without the stamp."""
        return tuple(n for n in self.schema.names if n != STAMP)

    @property
    def every(self) -> int:
        """Every how many events one is timed by itself."""
        return 1 if self.learner is not None else max(1, self.sample_every)

    def deadlines(self, batch: pa.RecordBatch) -> npt.NDArray[np.float64] | None:
        """The instant after which each event is too old; None without a timeout."""
        if self.timeout_s is None:
            return None
        stamps = batch.column(STAMP).to_numpy(zero_copy_only=False)
        return np.asarray(stamps + self.timeout_s, dtype=float)

    def stamped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with a stamp on every event, also where a source's own column of them has
        holes.
        """
        if STAMP in batch.schema.names:
            at, stamps = batch.schema.get_field_index(STAMP), batch.column(STAMP)
            return (
                batch.set_column(at, STAMP, stamps.fill_null(self.arrived_at))
                if stamps.null_count
                else batch
            )
        return batch.append_column(STAMP, pa.array(np.full(batch.num_rows, self.arrived_at)))


class EventFailed(Exception):
    """Stops the pipeline: the message is the sentence a user sees. ``event`` is a whole record
    batch when no event fails by itself.
    """

    def __init__(self, operator: str, event: Any, error: Exception) -> None:
        whole = isinstance(event, pa.RecordBatch)
        on = (
            f"a batch of {event.num_rows} events (each alone passes)"
            if whole
            else f"event {event!r}"
        )
        super().__init__(
            f"{MARK}operator '{operator}' failed on {on}: {type(error).__name__}: {error}{MARK}"
        )
