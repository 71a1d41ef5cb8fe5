"""Events that an operator's function does not get, or fails on: records that do not parse, events
that are too old or too many. They become dead letters, or end the run with a sentence.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pyarrow as pa

from foretide.errors import PipelineFailed
from foretide.spark.worker.columns import ERROR, EVENT, KEY, OPERATOR, OUT, STAMP, UNPARSED
from foretide.spark.worker.meter import Report, TaskMeter
from foretide.spark.worker.traces import DROPPED, count
from foretide.spark.worker.work import MARK, Row, Work


class Dropped(Exception):
    """An event that is not worked on: too old, or too many wait. It becomes a dead letter."""


def accepted(
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
    dead = columns(work, [dead_letter(work, event, error) for event in shown], events.column(STAMP))
    if work.follow_every:
        follow(work, events, dead, meter.report)
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
    rows = [dead_letter(work, text, error) for text in texts]
    meter.report.diverted += len(rows)
    meter.batch(apart, 0.0)
    return events.filter(said.is_null()), columns(work, rows, apart.column(STAMP))


def dead_letter(work: Work, event: Any, error: Exception) -> Row:
    """The row that is written for an event instead of what its function gives."""
    said = {
        OPERATOR: work.operator,
        ERROR: f"{type(error).__name__}: {error}",
        EVENT: json.dumps(event, default=str),
    }
    return tuple(said.get(n) for n in work.names)


def columns(work: Work, rows: list[Row], stamps: pa.Array) -> pa.RecordBatch:
    """Rows in the written schema, with their stamps."""
    by_name = dict(zip(work.names, zip(*rows, strict=True), strict=True))
    arrays = [stamps if f.name == STAMP else pa.array(by_name[f.name], f.type) for f in work.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=work.schema)


def follow(work: Work, taken: pa.RecordBatch, made: pa.RecordBatch | None, report: Report) -> None:
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
