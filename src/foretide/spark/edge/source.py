"""The streaming source behind an operator's incoming edges: decides which delivered files the next
micro-batch takes.

Admission control is here: a batch takes as many events as the operator's replicas can work off in
about two triggers (a limit that the running pipeline renews in a small file), so that a change of
replicas takes effect soon even behind a large backlog. A batch starts when events were delivered,
not at fixed instants: Spark's question for new offsets waits until there are some. Most operators
only take the offsets and read the files with Spark's own reader; stateful ones and loops read
through ``read`` below.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from foretide.clock import POLL_S
from foretide.spark.edge.inbox import Inbox
from foretide.spark.edge.store import address_for_readers, is_local, place_at
from foretide.spark.worker.planning import end_quietly

ReadPieces = Callable[[Sequence[tuple[str, int]], pa.Schema], Iterator[pa.RecordBatch]]
"""Reads pieces, given by name and number of events, in a schema."""
EVENTS_PER_TASK = 50_000
NO_LIMIT = 1_000_000_000
WAIT_S = 0.4
"""How long Spark's question for new offsets waits for an answer. A stop waits as long."""


@dataclass
class _Files(InputPartition):
    paths: list[tuple[str, int]]


class _Reader(DataSourceStreamReader):
    def __init__(
        self,
        inbox: Inbox,
        limit_file: Path,
        pause_s: float,
        schema: StructType,
        read_pieces: ReadPieces,
    ) -> None:
        self.inbox = inbox
        self.read_pieces = read_pieces
        self.limit_file = limit_file
        self.pause_s = pause_s
        self.schema = schema
        self._next_at = 0.0
        # Requests to a store cost money: there, one look per question.
        self._look_s = POLL_S if is_local(inbox.edges) else WAIT_S

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        return self.inbox.start()

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """Return as soon as something waits, or ``start`` after a while: Spark asks again."""
        until = time.monotonic() + WAIT_S
        while True:
            now = time.monotonic()
            reached = self.inbox.advance(start, self._limit()) if now >= self._next_at else start
            if reached != start:
                self._next_at = now + self.pause_s
                return reached
            if now >= until:
                return start
            time.sleep(self._look_s)

    def _limit(self) -> int:
        try:
            return int(self.limit_file.read_text())
        except (OSError, ValueError):
            return NO_LIMIT

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        groups: list[InputPartition] = []
        events = EVENTS_PER_TASK
        for pieces in self.inbox.between(start, end).values():
            for piece in pieces:
                if events >= EVENTS_PER_TASK:
                    groups.append(_Files([]))
                    events = 0
                group = groups[-1]
                assert isinstance(group, _Files)
                group.paths.append((piece.name, piece.events))
                events += piece.events
        return groups

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Files)
        schema = to_arrow_schema(self.schema, timezone="UTC")
        yield from self.read_pieces(partition.paths, schema)


def read_files(paths: Sequence[tuple[str, int]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The events of parquet files, given with their counts."""
    for path, _ in paths:
        table = pq.ParquetFile(path).read().select(schema.names).cast(schema)
        yield from table.to_batches()


class EdgeDataSource(DataSource):
    """Format ``foretide-edge``: what waits for one consumer; tasks read it by ``read_pieces``."""

    read_pieces: ClassVar[ReadPieces] = staticmethod(read_files)

    @classmethod
    def name(cls) -> str:
        return "foretide-edge"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        end_quietly()
        inbox = Inbox(
            place_at(self.options["edges"]),
            self.options["consumer"],
            self.options["producers"].split(","),
        )
        return _Reader(
            inbox,
            Path(self.options["limit_file"]),
            float(self.options["pause_s"]),
            schema,
            type(self).read_pieces,
        )


def edge_stream(
    spark: SparkSession,
    inbox: Inbox,
    schema: StructType,
    limit_file: Path,
    pause_s: float,
    kind: type[EdgeDataSource] = EdgeDataSource,
) -> DataFrame:
    """The incoming edges of one operator, all of them together, as a streaming DataFrame."""
    spark.dataSource.register(kind)
    return (
        spark.readStream.format(kind.name())
        .schema(schema)
        .option("edges", address_for_readers(inbox.edges))
        .option("consumer", inbox.consumer)
        .option("producers", ",".join(inbox.producers))
        .option("limit_file", str(limit_file))
        .option("pause_s", str(pause_s))
        .load()
    )
