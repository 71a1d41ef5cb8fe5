"""What a replica measures of its own work: a report at the end of its share, and progress on the
way.

Spark passes accumulators on when a task ends. A task of minutes therefore also writes its progress
to a small file, about once a second.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import AccumulatorParam, TaskContext

from foretide.spark.worker.columns import KEY, STAMP
from foretide.spark.worker.executor import executor_name, resident_bytes
from foretide.spark.worker.stamps import summary
from foretide.spark.worker.traces import Trace

# Imports numba, which a worker needs only for a grouping that compiles code.
if TYPE_CHECKING:
    from foretide.balance.grouping import CostLearner

PROGRESS_S = 1.0
"""Seconds between two progress files of one task."""


@dataclass
class Report:
    """What one replica did in one batch. ``late`` events were dropped unprocessed: too old, or too
    many for the queue; they are among the ``diverted``. ``times`` are seconds of the sampled
    events, ``stamps`` at most a few hundred of them; ``executor`` is where it ran, None where that
    is unknown. ``memory_bytes`` is what its Python worker held at the end, ``moved_bytes`` the size
    of the events that it took and gave.
    """

    replica: int
    processed: int = 0
    diverted: int = 0
    busy_s: float = 0.0
    sampled: int = 0
    time_s: float = 0.0
    time_squared: float = 0.0
    stamp_sum: float = 0.0
    stamps: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    costs: bytes | None = None
    expected_s: float = 0.0
    learning_s: float = 0.0
    executor: str | None = None
    memory_bytes: float = 0.0
    moved_bytes: float = 0.0
    traces: dict[float, Trace] = field(default_factory=dict)
    late: int = 0


class Reports(AccumulatorParam[dict[int, Report]]):
    """Collects reports by replica: a task that Spark ran twice counts once."""

    def zero(self, value: dict[int, Report]) -> dict[int, Report]:
        return {}

    def addInPlace(self, value1: dict[int, Report], value2: dict[int, Report]) -> dict[int, Report]:  # noqa: N802
        value1.update(value2)
        return value1


@dataclass(frozen=True)
class Progress:
    """Events that a replica has processed so far, and the seconds it was busy with them."""

    processed: int
    busy_s: float


def read_progress(prefix: str) -> dict[int, Progress]:
    """The progress of running tasks, by replica, from the files that start with ``prefix``."""
    progress = {}
    folder, start = os.path.split(prefix)
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.startswith(start) and name[len(start) :].isdigit():
            try:
                with open(os.path.join(folder, name)) as file:
                    processed, busy_s = file.read().split()
                progress[int(name[len(start) :])] = Progress(int(processed), float(busy_s))
            except (OSError, ValueError):  # it has just been replaced or removed
                continue
    return progress


class TaskMeter:
    """Gathers one task's report; ``progress`` is the prefix of the files for its progress."""

    def __init__(self, learner: CostLearner | None, progress: str | None = None) -> None:
        context = TaskContext.get()
        self.report = Report(
            context.partitionId() if context else 0,
            executor=executor_name() if context else None,
        )
        self._file = None if progress is None else f"{progress}{self.report.replica}"
        self._batch_at = perf_counter()
        self._next_at = self._batch_at + PROGRESS_S
        self._learner = learner
        self.until_sample = 0
        self._stamps: list[npt.NDArray[np.float64]] = []
        self._keys: list[npt.NDArray[np.uint64]] = []
        self._keyed = 0
        self._sampled: list[int] = []
        self._times: list[float] = []
        self._even: list[npt.NDArray[np.float64]] = []
        self._missed: list[int] = []

    def start(self) -> float:
        """Work on a record batch begins now."""
        self._batch_at = perf_counter()
        return self._batch_at

    def miss(self, row: int) -> None:
        """Event ``row`` of the record batch was dropped unprocessed."""
        self._missed.append(row)

    def drop(self, rows: int) -> None:
        """So many events were dropped before the work on a record batch began."""
        self.report.late += rows
        self.report.diverted += rows

    def batch(self, batch: pa.RecordBatch, busy_s: float) -> None:
        stamps = batch.column(STAMP).to_numpy(zero_copy_only=False)
        if KEY in batch.schema.names:
            self._keys.append(batch.column(KEY).to_numpy(zero_copy_only=False).view(np.uint64))
            self._keyed += batch.num_rows
        if self._missed:
            stamps = np.delete(stamps, self._missed)
            self.drop(len(self._missed))
            self._missed = []
        self._stamps.append(stamps)
        self.report.processed += len(stamps)
        self.report.moved_bytes += batch.nbytes
        self.report.busy_s += busy_s
        self.report.stamp_sum += float(stamps.sum())
        now = perf_counter()
        if now >= self._next_at:
            self._write_progress(now, self.report.processed, self.report.busy_s)

    def sample(self, seconds: float, row: int, now: float) -> None:
        """Event ``row`` of the record batch took ``seconds`` and ended ``now``."""
        self._times.append(seconds)
        self._sampled.append(self._keyed + row)
        if now >= self._next_at:
            busy_s = self.report.busy_s + now - self._batch_at
            self._write_progress(now, self.report.processed + row + 1, busy_s)

    def _write_progress(self, now: float, processed: int, busy_s: float) -> None:
        self._next_at = now + PROGRESS_S
        if self._file is None:
            return
        try:
            with open(f"{self._file}.new", "w") as file:
                file.write(f"{processed} {busy_s}")
            os.replace(f"{self._file}.new", self._file)
        except OSError:  # progress is only an early look: the report counts
            self._file = None

    def even(self, rows: int, busy_s: float) -> None:
        """Nobody knows what each event of a record batch cost: the same for all."""
        self._even.append(np.full(rows, busy_s / max(rows, 1)))

    def done(self) -> Report:
        times = np.array(self._times)
        r = self.report
        r.sampled, r.time_s, r.time_squared = (
            len(times),
            float(times.sum()),
            float((times**2).sum()),
        )
        r.memory_bytes = resident_bytes()
        r.stamps = summary(np.concatenate(self._stamps)) if self._stamps else np.empty(0)
        if self._learner is not None and self._keys:
            begun = perf_counter()
            keys, sketch = np.concatenate(self._keys), self._learner.new_sketch()
            r.expected_s = float(self._learner.estimate(keys).sum())
            if self._even:
                sketch.update(keys, np.concatenate(self._even))
            elif self._sampled:
                sketch.update(keys[self._sampled], times)
            r.costs = sketch.to_bytes()
            r.learning_s = perf_counter() - begun
        return r
