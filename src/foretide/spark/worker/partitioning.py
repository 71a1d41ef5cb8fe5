"""Spreads a batch's events over replicas, with any grouping, by ``repartitionById``.

Round-robin and grouping by key are said in Spark SQL (by Spark's own hash: equal keys meet,
whatever the hash). Every other grouping runs as a Python pass before the work, with its own
``assign``; the keys it saw travel on where the grouping learns costs. Tasks that read a batch side
by side each spread their own part evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from foretide.balance.arrow_keys import keys_of
from foretide.balance.count_min import CostSketch
from foretide.balance.grouping import Feedback, Grouping
from foretide.spark.worker.columns import KEY, REPLICA, STAMP
from foretide.spark.worker.meter import Report

ROW = (1 << 33) - 1
"""The bits of Spark's increasing id that count the rows of a task; the others are the task's."""


def spread(
    frame: DataFrame,
    grouping: Grouping,
    replicas: int,
    by: Sequence[str] = (),
    spent: Callable[[float], None] = lambda s: None,
) -> DataFrame:
    """The same events in ``replicas`` partitions; partition id = replica id. A grouping that learns
    costs adds the column ``_key``.

    Keys are made of the columns ``by``, or of the whole event; ``spent`` is called with the seconds
    a task took to assign.
    """
    learns = grouping.traits.learns_costs
    if replicas == 1 and not learns:
        return frame.coalesce(1)
    names = list(by) or [c for c in frame.columns if c != STAMP]
    if grouping.traits.same_as == "round-robin":
        row = (
            sf.monotonically_increasing_id().bitwiseAND(ROW) + sf.spark_partition_id()
        )  # tasks start at different replicas
        placed = frame.withColumn(REPLICA, (row % replicas).cast("int"))
    elif grouping.traits.same_as == "hash":
        placed = frame.withColumn(
            REPLICA, sf.pmod(sf.xxhash64(*names), sf.lit(replicas)).cast("int")
        )
    else:
        schema = StructType(
            [
                *frame.schema.fields,
                StructField(KEY, LongType()),
                StructField(REPLICA, IntegerType()),
            ]
        )
        placed = frame.mapInArrow(_assign(grouping, replicas, names, spent), schema)
        if not learns:
            placed = placed.drop(KEY)
    return placed.repartitionById(replicas, sf.col(REPLICA)).drop(REPLICA)


def _assign(
    grouping: Grouping, replicas: int, names: Sequence[str], spent: Callable[[float], None]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        start = context.partitionId() if context else 0
        spent_s = 0.0
        for batch in batches:
            begun = perf_counter()
            keys = keys_of([batch.column(n) for n in names])
            ids = pa.array(grouping.assign(keys, replicas, start), pa.int32())
            columns = [*batch.columns, pa.array(keys.view(np.int64)), ids]
            placed = pa.RecordBatch.from_arrays(columns, [*batch.schema.names, KEY, REPLICA])
            start += batch.num_rows
            spent_s += perf_counter() - begun
            yield placed
        spent(spent_s)

    return body


def feedback(
    grouping: Grouping, reports: Sequence[Report], replicas: int, span_s: float
) -> Feedback:
    """What a finished batch teaches its grouping."""
    busy_s, processed, expected_s = np.zeros(replicas), np.zeros(replicas), np.zeros(replicas)
    costs: CostSketch | None = None
    for r in reports:
        busy_s[r.replica], processed[r.replica], expected_s[r.replica] = (
            r.busy_s,
            r.processed,
            r.expected_s,
        )
        if r.costs is not None:
            sketch = CostSketch.from_bytes(r.costs)
            if costs is None:
                costs = sketch
            else:
                costs.merge(sketch)
    return Feedback(
        busy_s,
        processed,
        span_s,
        costs,
        expected_s if grouping.traits.learns_costs else None,
    )
