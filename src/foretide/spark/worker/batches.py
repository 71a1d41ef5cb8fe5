"""The task body of a function per Arrow record batch."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np
import pyarrow as pa

from foretide.spark.worker.columns import KEY, OUT, STAMP
from foretide.spark.worker.dead_letters import accepted, columns, dead_letter
from foretide.spark.worker.meter import Report, TaskMeter
from foretide.spark.worker.work import Add, Body, EventFailed, Work


def run_batches(work: Work, add: Add) -> Body:
    """The task body of a function per record batch. When it raises, its events are tried one by one
    to find the bad one.
    """

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        meter = TaskMeter(work.learner, work.progress)
        for batch, dead in (accepted(work, b, meter) for b in batches):
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
        return [columns(work, [dead_letter(work, shown, error)], event.column(STAMP))]


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
