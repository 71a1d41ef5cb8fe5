"""What runs inside a task: the user's function on one replica's share of a batch, measured.

A replica's report travels back once per task. Its busy time counts the work on a batch, not waiting
for input or output; every ``sample_every``-th event is timed by itself (DRS's N_m), so that
measuring stays small beside the work. Where the grouping learns what events cost, every event is
timed; a function per record batch cannot be, so the time of a batch counts evenly for its events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretide.spark.worker.columns import KEY, OUT, RESERVED, STAMP
from foretide.spark.worker.dead_letters import Dropped, accepted, columns, dead_letter, follow
from foretide.spark.worker.meter import Report, TaskMeter
from foretide.spark.worker.work import Add, Body, EventFailed, Row, Work

CONVERSION_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)
"""What pyarrow raises for a value that does not fit its column."""

SLOW_S = 0.001
"""An event that takes this long is timed, and so is the next one: a look at the clock is nothing
beside it, and windows of few events still tell how much their times vary.
"""


def warm() -> None:
    """What a worker does once, done by the daemon before it forks: pyarrow imports pandas when it
    first makes columns of rows.
    """
    pa.RecordBatch.from_pylist([{"a": 0}], schema=pa.schema([("a", pa.int64())]))


def run_events(work: Work, add: Add) -> Body:
    """The task body of a function per event."""

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        meter = TaskMeter(work.learner, work.progress)
        for batch, dead in (accepted(work, b, meter) for b in batches):
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
                follow(work, batch, made, meter.report)
            meter.batch(batch, perf_counter() - started)
            if made is not None:
                meter.report.moved_bytes += made.nbytes
                yield made
        if meter.report.processed or meter.report.late:
            add({meter.report.replica: meter.done()})

    return body


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
    return dead_letter(work, event, error)


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


def _arrow(
    work: Work, rows: list[Row], stamps: pa.Array, of: list[int] | None, report: Report
) -> pa.RecordBatch:
    """Rows as one record batch; when a value does not fit its column, what the function gave is
    named or diverted.

    ``of`` is the event each row comes from (None: one row per event).
    """
    try:
        return columns(work, rows, stamps)
    except CONVERSION_ERRORS:
        good: list[Row] = []
        bad: set[int] = set()
        for i, row in enumerate(rows):
            try:
                columns(work, [row], stamps.slice(i, 1))
                good.append(row)
            except CONVERSION_ERRORS as error:
                given = {n: v for n, v in zip(work.names, row, strict=True) if n not in RESERVED}
                if not work.diverts:
                    odd = ValueError(f"what it gives does not fit its schema: {error}")
                    raise EventFailed(work.operator, given, odd) from error
                good.append(dead_letter(work, given, error))
                bad.add(i if of is None else of[i])
        report.diverted += len(bad)
        return columns(work, good, stamps)
