"""Edges as directories, the embedded default: the driver and all executors see one disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from foretide.spark.edge.inbox import Inbox
from foretide.spark.edge.outbox import Outbox
from foretide.spark.edge.protocol import Durability, Piece
from foretide.spark.edge.source import edge_stream


class DirectoryInput(Inbox):
    """An inbox that Spark reads."""

    def frame(self, spark: SparkSession, schema: StructType, pieces: Sequence[Piece]) -> DataFrame:
        return spark.read.schema(schema).parquet(*[p.name for p in pieces])

    def stream(
        self, spark: SparkSession, schema: StructType, limit_file: Path, pause_s: float
    ) -> DataFrame:
        return edge_stream(spark, self, schema, limit_file, pause_s)


@dataclass(frozen=True, slots=True)
class DirectoryEdges:
    """All edges of a pipeline under one folder."""

    root: Path
    durability: Durability = "process"

    def output(self, operator: str) -> Outbox:
        return Outbox(self.root / operator, self.durability)

    def input(self, consumer: str, producers: Sequence[str]) -> DirectoryInput:
        return DirectoryInput(self.root, consumer, producers)
