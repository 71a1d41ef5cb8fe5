"""What runs inside a task: the user's function on one replica's share of a batch, measured.

A replica's report travels back once per task. Its busy time counts the work on a batch, not waiting for input or output; every
``sample_every``-th event is timed by itself (DRS's N_m), so that measuring stays small beside the work. Where the grouping learns what
events cost, every event is timed; a function per record batch cannot be, so the time of a batch counts evenly for its events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import AccumulatorParam, TaskContext

from foretide.spark.stamps import summary

if TYPE_CHECKING:  # its module compiles code, which a worker only needs when it gets such a grouping
    from foretide.balance.osg import OnlineShuffle

STAMP, OUT, ERROR, EVENT, KEY = "_at", "_out", "_error", "_event", "_key"
MARK = "\u2063foretide\u2063"
"""Stands before and after our own sentence inside Spark's long traces."""

Body = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Add = Callable[["dict[int, Report]"], None]


@dataclass(frozen=True)
class Work:
    """All that a task needs of its operator; it travels with every batch."""

    operator: str
    function: Callable[..., Any]
    schema: pa.Schema
    columns: Mapping[str | None, frozenset[str]]
    diverts: bool = False
    sample_every: int = 10
    learner: OnlineShuffle | None = None


@dataclass
class Report:
    """What one replica did in one batch. ``times`` are seconds of the sampled events, ``stamps`` at most a few hundred of them."""

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


class Reports(AccumulatorParam[dict[int, Report]]):
    """Collects reports by replica: a task that Spark ran twice counts once."""

    def zero(self, value: dict[int, Report]) -> dict[int, Report]:
        return {}

    def addInPlace(self, value1: dict[int, Report], value2: dict[int, Report]) -> dict[int, Report]:  # noqa: N802
        value1.update(value2)
        return value1


class EventFailed(Exception):
    """Stops the pipeline: the message is the sentence a user sees."""

    def __init__(self, operator: str, event: Any, error: Exception) -> None:
        super().__init__(f"{MARK}operator '{operator}' failed on event {event!r}: {type(error).__name__}: {error}{MARK}")


def warm() -> None:
    """What a worker does once, done by the daemon before it forks: pyarrow imports pandas when it first makes columns of rows."""
    pa.RecordBatch.from_pylist([{"a": 0}], schema=pa.schema([("a", pa.int64())]))


class _Meter:
    """Gathers one task's report."""

    def __init__(self, work: Work) -> None:
        context = TaskContext.get()
        self.report = Report(context.partitionId() if context else 0)
        self.work = work
        self._stamps: list[npt.NDArray[np.float64]] = []
        self._keys: list[npt.NDArray[np.uint64]] = []
        self._sampled: list[int] = []
        self._times: list[float] = []
        self._even: list[npt.NDArray[np.float64]] = []

    def batch(self, batch: pa.RecordBatch, busy_s: float) -> None:
        stamps = batch.column(STAMP).to_numpy(zero_copy_only=False)
        if KEY in batch.schema.names:
            self._keys.append(batch.column(KEY).to_numpy(zero_copy_only=False).view(np.uint64))
        self._stamps.append(stamps)
        self.report.processed += batch.num_rows
        self.report.busy_s += busy_s
        self.report.stamp_sum += float(stamps.sum())

    def sample(self, seconds: float, row: int) -> None:
        self._times.append(seconds)
        self._sampled.append(self.report.processed + row)

    def even(self, rows: int, busy_s: float) -> None:
        """Nobody knows what each event of a record batch cost: the same for all."""
        self._even.append(np.full(rows, busy_s / max(rows, 1)))

    def done(self) -> Report:
        times = np.array(self._times)
        r = self.report
        r.sampled, r.time_s, r.time_squared = len(times), float(times.sum()), float((times**2).sum())
        r.stamps = summary(np.concatenate(self._stamps)) if self._stamps else np.empty(0)
        if self.work.learner is not None and self._keys:
            begun = perf_counter()
            keys, sketch = np.concatenate(self._keys), self.work.learner.new_sketch()
            r.expected_s = float(self.work.learner.estimate(keys).sum())
            if self._even:
                sketch.update(keys, np.concatenate(self._even))
            elif self._sampled:
                sketch.update(keys[self._sampled], times)
            r.costs = sketch.to_bytes()
            r.learning_s = perf_counter() - begun
        return r


def run_events(work: Work, add: Add) -> Body:
    """The task body of a function per event."""

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        meter = _Meter(work)
        every, seen, function = 1 if work.learner is not None else max(1, work.sample_every), 0, work.function
        for batch in batches:
            started = perf_counter()
            stamps = batch.column(STAMP).to_pylist()
            events = batch.select([c for c in batch.schema.names if c not in (STAMP, KEY)]).to_pylist()
            rows: list[dict[str, Any]] = []
            for i, event in enumerate(events):
                try:
                    if seen % every:
                        result = function(event)
                    else:
                        before = perf_counter()
                        result = function(event)
                        meter.sample(perf_counter() - before, i)
                    if result is not None:
                        rows.extend(_rows(work, result, stamps[i]))
                except Exception as error:
                    if not work.diverts:
                        raise EventFailed(work.operator, event, error) from error
                    rows.append(_dead(event, error, stamps[i]))
                    meter.report.diverted += 1
                seen += 1
            made = _arrow(work, rows) if rows else None
            meter.batch(batch, perf_counter() - started)
            if made is not None:
                yield made
        if meter.report.processed:
            add({meter.report.replica: meter.done()})

    return body


def _rows(work: Work, result: Any, stamp: float) -> list[dict[str, Any]]:
    """What a function gave for one event, as rows of the written schema."""
    named = None not in work.columns
    pieces = [result] if isinstance(result, dict) or (named and isinstance(result, tuple)) else result
    rows = []
    for piece in pieces:
        output, given = piece if named else (None, piece)
        if output not in work.columns:
            raise ValueError(f"it gives output {output!r}; its outputs are {', '.join(map(str, work.columns))}")
        if not given.keys() <= work.columns[output]:
            odd = ", ".join(sorted(given.keys() - work.columns[output]))
            raise ValueError(f"it gives column {odd}, which its schema does not have")
        row = {**given, STAMP: stamp}
        if named:
            row[OUT] = output
        rows.append(row)
    return rows


def _dead(event: Any, error: Exception, stamp: float) -> dict[str, Any]:
    return {EVENT: json.dumps(event, default=str), ERROR: f"{type(error).__name__}: {error}", STAMP: stamp}


def _arrow(work: Work, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Rows as one record batch; when a value does not fit its column, the event that gave it is named or diverted."""
    try:
        return pa.RecordBatch.from_pylist(rows, schema=work.schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        good = []
        for row in rows:
            try:
                pa.RecordBatch.from_pylist([row], schema=work.schema)
                good.append(row)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                given = {k: v for k, v in row.items() if not k.startswith("_")}
                if not work.diverts:
                    odd = ValueError(f"what it gives does not fit its schema: {error}")
                    raise EventFailed(work.operator, given, odd) from error
                good.append(_dead(given, error, row[STAMP]))
        return pa.RecordBatch.from_pylist(good, schema=work.schema)


def run_batches(work: Work, add: Add) -> Body:
    """The task body of a function per record batch. When it raises, its events are tried one by one to find the bad one."""

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        meter = _Meter(work)
        for batch in batches:
            started = perf_counter()
            shown = batch.select([c for c in batch.schema.names if c != KEY])
            try:
                made = _made(work, shown)
            except Exception:
                made = []
                for i in range(shown.num_rows):
                    made += _one(work, shown.slice(i, 1), meter.report)
            busy_s = perf_counter() - started
            if work.learner is not None:
                meter.even(batch.num_rows, busy_s)
            meter.batch(batch, busy_s)
            yield from made
        if meter.report.processed:
            add({meter.report.replica: meter.done()})

    return body


def _one(work: Work, event: pa.RecordBatch, report: Report) -> list[pa.RecordBatch]:
    try:
        return _made(work, event)
    except Exception as error:
        shown = event.to_pylist()[0]
        stamp = shown.pop(STAMP)
        if not work.diverts:
            raise EventFailed(work.operator, shown, error) from error
        report.diverted += 1
        return [pa.RecordBatch.from_pylist([_dead(shown, error, stamp)], schema=work.schema)]


def _made(work: Work, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    result = work.function(batch)
    if result is None:
        return []
    named = None not in work.columns
    made = []
    for output, part in result.items() if named else ((None, result),):
        if output not in work.columns:
            raise ValueError(f"it gives output {output!r}; its outputs are {', '.join(map(str, work.columns))}")
        if part.num_rows:
            made.append(_fitted(work, batch, part, output))
    return made


def _fitted(work: Work, batch: pa.RecordBatch, part: pa.RecordBatch, output: str | None) -> pa.RecordBatch:
    """The user's batch in the written schema: stamps carried over, columns of other outputs empty."""
    arrays = []
    for f in work.schema:
        if f.name == OUT:
            arrays.append(pa.array([output] * part.num_rows, f.type))
        elif f.name in part.schema.names:
            arrays.append(part.column(f.name).cast(f.type))
        elif f.name == STAMP:
            old = batch.column(STAMP)
            arrays.append(old if len(old) == part.num_rows else pa.array(np.full(part.num_rows, old.to_numpy().min()), f.type))
        elif f.name in work.columns[output]:
            raise ValueError(f"it gives no column '{f.name}', which its schema has")
        else:
            arrays.append(pa.nulls(part.num_rows, f.type))
    return pa.RecordBatch.from_arrays(arrays, schema=work.schema)
