"""What runs inside a task: the user's function on one replica's share of a batch, measured.

A replica's report travels back once per task. Its busy time counts the work on a batch, not waiting
for input or output; every ``sample_every``-th event is timed by itself (DRS's N_m), so that
measuring stays small beside the work. Where the grouping learns what events cost, every event is
timed; a function per record batch cannot be, so the time of a batch counts evenly for its events.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretide.errors import PipelineFailed
from foretide.spark.worker.columns import (
    ERROR,
    EVENT,
    KEY,
    OPERATOR,
    OUT,
    RESERVED,
    STAMP,
    UNPARSED,
)
from foretide.spark.worker.meter import Report, TaskMeter
from foretide.spark.worker.traces import DROPPED, count

# Imports numba, which a worker needs only for a grouping that compiles code.
if TYPE_CHECKING:
    from foretide.balance.grouping import CostLearner

MARK = "\u2063foretide\u2063"
"""Stands before and after our own sentence inside Spark's long traces."""

CONVERSION_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)
"""What pyarrow raises for a value that does not fit its column."""

SLOW_S = 0.1
"""An event that takes this long is worth timing, and so is the next one."""

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


class Dropped(Exception):
    """An event that is not worked on: too old, or too many wait. It becomes a dead letter."""


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


def warm() -> None:
    """What a worker does once, done by the daemon before it forks: pyarrow imports pandas when it
    first makes columns of rows.
    """
    pa.RecordBatch.from_pylist([{"a": 0}], schema=pa.schema([("a", pa.int64())]))


def run_events(work: Work, add: Add) -> Body:
    """The task body of a function per event."""

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        meter = TaskMeter(work.learner, work.progress)
        for batch, dead in (_accepted(work, b, meter) for b in batches):
            yield from dead
            if not batch.num_rows:
                continue
            started = meter.start()
            events = batch.select(
                [c for c in batch.schema.names if c not in (STAMP, KEY)]
            ).to_pylist()
            rows, of = _rows(work, events, meter, work.deadlines(batch))
            stamps = (
                batch.column(STAMP)
                if of is None
                else batch.column(STAMP).take(pa.array(of, pa.int64()))
            )
            made = _arrow(work, rows, stamps, of, meter.report) if rows else None
            if work.follow_every:
                _follow(work, batch, made, meter.report)
            meter.batch(batch, perf_counter() - started)
            if made is not None:
                meter.report.moved_bytes += made.nbytes
                yield made
        if meter.report.processed or meter.report.late:
            add({meter.report.replica: meter.done()})

    return body


def _follow(work: Work, taken: pa.RecordBatch, made: pa.RecordBatch | None, report: Report) -> None:
    """Count the followed stamps of what was taken and of what was made of it."""
    stamps, outputs = np.empty(0), list[str | None]()
    if made is not None:
        stamps = made.column(STAMP).to_numpy(zero_copy_only=False)
        names = made.schema.names
        outputs = made.column(OUT).to_pylist() if OUT in names else [None] * made.num_rows
        if ERROR in names:
            errors = made.column(ERROR).to_pylist()
            outputs = [o if e is None else DROPPED for o, e in zip(outputs, errors, strict=True)]
    came = taken.column(STAMP).to_numpy(zero_copy_only=False)
    count(report.traces, came, stamps, outputs, work.follow_every)


def _accepted(
    work: Work, batch: pa.RecordBatch, meter: TaskMeter
) -> tuple[pa.RecordBatch, list[pa.RecordBatch]]:
    """The events to work on, and the dead letters of those that do not parse or are dropped."""
    events, unparsed = _parsed(work, work.stamped(batch), meter)
    dead = [] if unparsed is None else [unparsed]
    shed = round(work.shed * events.num_rows)
    if shed:
        dead.append(_dropped(work, events.slice(0, shed), meter, Dropped("the queue was full")))
        events = events.slice(shed)
    deadlines = work.deadlines(events)
    if deadlines is not None and (late := deadlines < time.time()).any():
        old = Dropped(f"older than {work.timeout_s:g} s")
        dead.append(_dropped(work, events.filter(pa.array(late)), meter, old))
        events = events.filter(pa.array(~late))
    return events, dead


def _dropped(
    work: Work, events: pa.RecordBatch, meter: TaskMeter, error: Dropped
) -> pa.RecordBatch:
    shown = events.select([c for c in events.schema.names if c not in (STAMP, KEY)]).to_pylist()
    meter.drop(events.num_rows)
    dead = _columns(work, [_dead(work, event, error) for event in shown], events.column(STAMP))
    if work.follow_every:
        _follow(work, events, dead, meter.report)
    return dead


def _parsed(
    work: Work, batch: pa.RecordBatch, meter: TaskMeter
) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """A source's events, and the dead letters of its records that do not parse."""
    if UNPARSED not in batch.schema.names:
        return batch, None
    said = batch.column(UNPARSED)
    events = batch.drop_columns([UNPARSED])
    if said.null_count == len(said):
        return events, None
    texts = said.drop_null().to_pylist()
    if not work.diverts:
        raise PipelineFailed(
            f"{MARK}operator '{work.operator}': {texts[0]}; declare it with on_error='divert' to "
            f"put "
            f"such records aside as dead letters{MARK}"
        )
    apart = events.filter(said.is_valid()).select([c for c in events.schema.names if c != KEY])
    error = ValueError("it does not parse")
    rows = [_dead(work, text, error) for text in texts]
    meter.report.diverted += len(rows)
    meter.batch(apart, 0.0)
    return events.filter(said.is_null()), _columns(work, rows, apart.column(STAMP))


def _rows(
    work: Work,
    events: list[dict[str, Any]],
    meter: TaskMeter,
    deadlines: npt.NDArray[np.float64] | None = None,
) -> tuple[list[Row], list[int] | None]:
    """What the function gives for each event, as rows of the written columns without the stamp, and
    the event each row comes from.

    None stands for "one row per event". A dict with every column of the only output takes a short
    way: beside work of a few microseconds, a look at each column would show.
    """
    rows: list[Row] = []
    of: list[
        int
    ] = []  # complete up to some row; the rows after it come from consecutive events, one each
    function, every, wait = work.function, work.every, meter.until_sample
    whole, pick = _picker(work)
    for i, event in enumerate(events):
        try:
            if deadlines is not None and deadlines[i] < time.time():
                raise Dropped(f"older than {work.timeout_s:g} s")
            if wait:
                wait -= 1
                result = function(event)
            else:
                before = perf_counter()
                result = function(event)
                now = perf_counter()
                wait = every - 1 if now - before < SLOW_S else 0
                meter.sample(now - before, i, now)
            if type(result) is dict and len(result) == whole:
                try:
                    rows.append(pick(result))
                    continue
                except KeyError:  # another column instead of one of them: the long way says so
                    pass
            made = [] if result is None else _pieces(work, result)
        except Exception as error:
            made = [_refused(work, event, i, error, meter)]
        of += [*range(i + len(of) - len(rows), i), *[i] * len(made)]
        rows += made
    meter.until_sample = wait
    return rows, [*of, *range(len(events) + len(of) - len(rows), len(events))] if of or len(
        rows
    ) < len(events) else None


def _refused(work: Work, event: Any, row: int, error: Exception, meter: TaskMeter) -> Row:
    """The dead letter of an event that failed or was dropped; raises where failing ends the run."""
    if isinstance(error, Dropped):
        meter.miss(row)
    elif not work.diverts:
        raise EventFailed(work.operator, event, error) from error
    else:
        meter.report.diverted += 1
    return _dead(work, event, error)


def _picker(work: Work) -> tuple[int, Callable[[dict[str, Any]], Row]]:
    """Columns of the only output (-1: there are several outputs, or too few columns) and how a dict
    with so many becomes a row.
    """
    names = [n for n in work.names if n in work.columns.get(None, ())]
    if len(names) < 2:  # itemgetter of one name gives no tuple
        return -1, lambda given: ()
    pick, empty = itemgetter(*names), (None,) * (len(work.names) - len(names))
    return len(names), (lambda given: pick(given) + empty) if empty else pick


def _pieces(work: Work, result: Any) -> list[Row]:
    """What a function gave for one event, checked column by column."""
    named = None not in work.columns
    pieces = (
        [result] if isinstance(result, dict) or (named and isinstance(result, tuple)) else result
    )
    rows = []
    for piece in pieces:
        output, given = piece if named else (None, piece)
        if output not in work.columns:
            raise ValueError(
                f"it gives output {output!r}; its outputs are {', '.join(map(str, work.columns))}"
            )
        if not given.keys() <= work.columns[output]:
            odd = ", ".join(sorted(given.keys() - work.columns[output]))
            raise ValueError(f"it gives column {odd}, which its schema does not have")
        rows.append(tuple(output if n == OUT else given.get(n) for n in work.names))
    return rows


def _dead(work: Work, event: Any, error: Exception) -> Row:
    said = {
        OPERATOR: work.operator,
        ERROR: f"{type(error).__name__}: {error}",
        EVENT: json.dumps(event, default=str),
    }
    return tuple(said.get(n) for n in work.names)


def _arrow(
    work: Work, rows: list[Row], stamps: pa.Array, of: list[int] | None, report: Report
) -> pa.RecordBatch:
    """Rows as one record batch; when a value does not fit its column, what the function gave is
    named or diverted.

    ``of`` is the event each row comes from (None: one row per event).
    """
    try:
        return _columns(work, rows, stamps)
    except CONVERSION_ERRORS:
        good: list[Row] = []
        bad: set[int] = set()
        for i, row in enumerate(rows):
            try:
                _columns(work, [row], stamps.slice(i, 1))
                good.append(row)
            except CONVERSION_ERRORS as error:
                given = {n: v for n, v in zip(work.names, row, strict=True) if n not in RESERVED}
                if not work.diverts:
                    odd = ValueError(f"what it gives does not fit its schema: {error}")
                    raise EventFailed(work.operator, given, odd) from error
                good.append(_dead(work, given, error))
                bad.add(i if of is None else of[i])
        report.diverted += len(bad)
        return _columns(work, good, stamps)


def _columns(work: Work, rows: list[Row], stamps: pa.Array) -> pa.RecordBatch:
    by_name = dict(zip(work.names, zip(*rows, strict=True), strict=True))
    arrays = [stamps if f.name == STAMP else pa.array(by_name[f.name], f.type) for f in work.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=work.schema)


def run_batches(work: Work, add: Add) -> Body:
    """The task body of a function per record batch. When it raises, its events are tried one by one
    to find the bad one.
    """

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        meter = TaskMeter(work.learner, work.progress)
        for batch, dead in (_accepted(work, b, meter) for b in batches):
            yield from dead
            if not batch.num_rows:
                continue
            started = meter.start()
            shown = batch.select([c for c in batch.schema.names if c != KEY])
            try:
                made = _made(work, shown)
            except Exception as error:
                made = [
                    m
                    for i in range(shown.num_rows)
                    for m in _one(work, shown.slice(i, 1), meter.report)
                ]
                if not work.diverts:
                    raise EventFailed(work.operator, shown, error) from error
            busy_s = perf_counter() - started
            if work.learner is not None:
                meter.even(batch.num_rows, busy_s)
            meter.batch(batch, busy_s)
            yield from made
        if meter.report.processed or meter.report.late:
            add({meter.report.replica: meter.done()})

    return body


def _one(work: Work, event: pa.RecordBatch, report: Report) -> list[pa.RecordBatch]:
    try:
        return _made(work, event)
    except Exception as error:
        shown = event.to_pylist()[0]
        del shown[STAMP]
        if not work.diverts:
            raise EventFailed(work.operator, shown, error) from error
        report.diverted += 1
        return [_columns(work, [_dead(work, shown, error)], event.column(STAMP))]


def _made(work: Work, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    result = work.function(batch)
    if result is None:
        return []
    named = None not in work.columns
    made = []
    for output, part in result.items() if named else ((None, result),):
        if output not in work.columns:
            raise ValueError(
                f"it gives output {output!r}; its outputs are {', '.join(map(str, work.columns))}"
            )
        if part.num_rows:
            made.append(_fitted(work, batch, part, output))
    return made


def _fitted(
    work: Work, batch: pa.RecordBatch, part: pa.RecordBatch, output: str | None
) -> pa.RecordBatch:
    """The user's batch in the written schema: stamps carried over, columns of other outputs
    empty.
    """
    arrays = []
    for f in work.schema:
        if f.name == OUT:
            arrays.append(pa.array([output] * part.num_rows, f.type))
        elif f.name in part.schema.names:
            arrays.append(part.column(f.name).cast(f.type))
        elif f.name == STAMP:
            old = batch.column(STAMP)
            arrays.append(
                old
                if len(old) == part.num_rows
                else pa.array(np.full(part.num_rows, old.to_numpy().min()), f.type)
            )
        elif f.name in work.columns[output]:
            raise ValueError(f"it gives no column '{f.name}', which its schema has")
        else:
            arrays.append(pa.nulls(part.num_rows, f.type))
    return pa.RecordBatch.from_arrays(arrays, schema=work.schema)
