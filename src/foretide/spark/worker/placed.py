"""A replica whose task runs on a chosen executor: it reads its share of a batch's files itself.

Tasks that Spark places by preferred location have no shuffle before them, so every replica reads
all files of the batch and keeps the events that the grouping gives it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from foretide.balance.arrow_keys import keys_of
from foretide.balance.grouping import Grouping
from foretide.spark.worker.columns import KEY
from foretide.spark.worker.work import Body


@dataclass(frozen=True)
class Deal:
    """How the events of a batch are dealt out to ``replicas``; every replica deals all of them and
    keeps its own.
    """

    replicas: int
    grouping: Grouping
    by: tuple[str, ...]
    schema: pa.Schema

    def share(self, replica: int, files: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The events of one replica, in the columns of ``schema``."""
        start = 0
        for file in files:
            table = pq.read_table(file).select(self.schema.names).cast(self.schema)
            for batch in table.combine_chunks().to_batches():
                keys, ids = self._ids(batch, start)
                start += batch.num_rows
                mine = pa.array(ids == replica)
                kept = batch.filter(mine)
                if keys is not None:
                    kept = kept.append_column(KEY, pa.array(keys.view(np.int64)).filter(mine))
                if kept.num_rows:
                    yield kept

    def _ids(self, batch: pa.RecordBatch, start: int) -> tuple[np.ndarray | None, np.ndarray]:
        """(keys where the grouping learns costs, the replica of every event)."""
        traits = self.grouping.traits
        if traits.same_as == "round-robin":
            return None, np.arange(start, start + batch.num_rows) % self.replicas
        keys = keys_of([batch.column(n) for n in self.by or batch.schema.names])
        ids = np.asarray(self.grouping.assign(keys, self.replicas, start))
        return (keys if traits.learns_costs else None), ids


def run_placed(inner: Body, deal: Deal) -> Body:
    """The task body that takes one row (replica, files as JSON) and runs ``inner`` on the events of
    that replica.
    """

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from inner(deal.share(row["replica"], json.loads(row["files"])))

    return body
