"""Cuts a large batch into parts that the replicas of the moment work off soon.

A batch stays one batch: its parts run one after another and are delivered together. Cutting serves
the next change of replicas and the accounts, which both would otherwise wait for the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from foretide.spark.edge.outbox import tidy
from foretide.spark.edge.protocol import Piece

SLACK = 1.5
"""A batch is cut when it holds more than this many times its limit."""
SPOOLED_EVENTS = 5000
SPOOL_TASKS = 4

CountedFile = tuple[Path, int]
Limit = Callable[[], int]
"""Events that the replicas of this moment should take at once."""


@dataclass(frozen=True)
class Cut:
    """Whole files, or the rows ``first`` to ``end - 1`` of one file."""

    paths: tuple[Path, ...]
    events: int
    rows: tuple[int, int] | None = None

    def frame(self, spark: SparkSession, schema: StructType) -> DataFrame:
        frame = spark.read.schema(schema).parquet(*map(str, self.paths))
        if self.rows is None:
            return frame
        row = sf.col("_metadata.row_index")
        return frame.where((row >= self.rows[0]) & (row < self.rows[1]))


def cuts(files: Sequence[CountedFile], limit: Limit) -> Iterator[Cut]:
    """Parts of about ``limit`` events each; the limit is read again for every part.

    >>> files = [(Path("a"), 100), (Path("b"), 30), (Path("c"), 30)]
    >>> [(c.events, c.rows) for c in cuts(files, lambda: 60)]
    [(60, (0, 60)), (40, (60, 100)), (60, None)]
    """
    left = list(files)
    while left:
        path, events = left.pop(0)
        if events > SLACK * limit():
            first = 0
            while first < events:
                rest, most = events - first, limit()
                count = rest if rest <= SLACK * most else most
                yield Cut((path,), count, (first, first + count))
                first += count
            continue
        taken, total = [path], events
        while left and total + left[0][1] <= limit():
            path, events = left.pop(0)
            taken.append(path)
            total += events
        yield Cut(tuple(taken), total)


def grouped(pieces: Sequence[Piece], limit: Limit) -> Iterator[list[Piece]]:
    """Whole pieces of an edge, about ``limit`` events at a time."""
    left = list(pieces)
    while left:
        taken = [left.pop(0)]
        while left and sum(p.events for p in taken) + left[0].events <= limit():
            taken.append(left.pop(0))
        yield taken


def spool(frame: DataFrame, folder: Path, per_file: int, tasks: int) -> list[CountedFile]:
    """Write a batch of unknown or large size as it is: its files and the events in each."""
    narrow = frame.coalesce(max(SPOOL_TASKS, tasks))
    per_file = max(SPOOLED_EVENTS, per_file)
    narrow.write.option("maxRecordsPerFile", per_file).parquet(str(folder))
    return [(folder / name, events) for name, events in tidy(folder)]
