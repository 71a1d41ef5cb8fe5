"""Edges as directories, the embedded default: the driver and all executors see one disk."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from foretide.model import Array
from foretide.spark.edge.inbox import Inbox
from foretide.spark.edge.outbox import Outbox, move, share, tidy
from foretide.spark.edge.protocol import Durability, File, Outlet, Piece
from foretide.spark.edge.source import edge_stream
from foretide.spark.worker.columns import TO
from foretide.spark.worker.stamps import read_back


class DirectoryOutput(Outbox):
    """An outbox of Parquet files that Spark writes."""

    def write(
        self, frame: DataFrame, outlets: Mapping[str, Outlet], staging: Path, per_file: int
    ) -> None:
        writer = frame.write.option("maxRecordsPerFile", per_file)
        if TO in frame.columns:
            writer = writer.partitionBy(TO)
        writer.parquet(str(staging / "data"))

    def collect(self, outlets: Mapping[str, Outlet], staging: Path) -> dict[str, tuple[File, ...]]:
        data = staging / "data"
        routed = data.is_dir() and any(e.name.startswith(f"{TO}=") for e in data.iterdir())
        files: dict[str, tuple[File, ...]] = {}
        for key, outlet in outlets.items():
            written = data / f"{TO}={key}" if routed else data
            if written.is_dir() and (held := tidy(written)):
                first, *others = outlet.folders
                if others:
                    share(written.iterdir(), [staging / o for o in others])
                move(written, staging / first)
                files.update(dict.fromkeys(outlet.folders, held))
        shutil.rmtree(data, ignore_errors=True)
        return files

    def stamps(
        self, staging: Path, files: Mapping[str, Sequence[File]]
    ) -> tuple[Array, float, float] | None:
        return read_back(staging, files)

    def frame(
        self, spark: SparkSession, schema: StructType, folder: str, batch: int | None = None
    ) -> DataFrame | None:
        if batch is None:
            return spark.read.parquet(str(self.root / "b-*" / folder)).select(*schema.names)
        held = self.folder(batch) / folder
        return spark.read.schema(schema).parquet(str(held)) if held.is_dir() else None


class DirectoryInput(Inbox):
    """An inbox that Spark reads."""

    on_disk: ClassVar[bool] = True

    def frame(
        self, spark: SparkSession, schema: StructType, pieces: Sequence[Piece], tasks: int = 1
    ) -> DataFrame:
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
    shares_disk: ClassVar[bool] = True

    def output(self, operator: str) -> DirectoryOutput:
        return DirectoryOutput(self.root / operator, self.durability)

    def input(self, consumer: str, producers: Sequence[str]) -> DirectoryInput:
        return DirectoryInput(self.root, consumer, producers)

    def close(self) -> None:
        """Nothing is held open."""
