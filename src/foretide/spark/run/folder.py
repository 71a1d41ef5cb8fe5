"""The folder of one pipeline: its lock, its identity, the replicas last set.

Layout::

    lock               held by the process that runs the pipeline
    pipeline.json      name, and when the pipeline first started here
    replicas.json      replicas per operator, as last set
    limit.<operator>   events that the operator's next batch takes at most
    service_times.json busy seconds per event, as learned
    progress/          what running tasks have done so far
    edges/ checkpoints/

With a store, ``pipeline.json``, ``replicas.json``, ``service_times.json``, edges and checkpoints
are there; the folder on the driver's disk holds the rest (and a copy of a store on a Hadoop file
system), and may be lost.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from foretide.errors import ActuationError, InvalidConfig, PipelineFailed
from foretide.spark.edge.checkpoint import Checkpoint
from foretide.spark.edge.directory import DirectoryEdges
from foretide.spark.edge.protocol import Durability, Edges
from foretide.spark.edge.store import Place, open_store, replace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


class RunFolder:
    """Owned by one process from construction to ``release``."""

    def __init__(
        self,
        path: Path | str,
        durability: Durability = "process",
        store: str | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        self.path = Path(path).absolute()
        self.durability = durability
        self.edges: Edges = DirectoryEdges(self.path / "edges", durability)
        self._lock = self._own()
        try:
            self.kept: Place = self.path
            if store is not None:
                self.kept = open_store(store, spark, self.path / "store")
        except BaseException:
            self.release()
            raise

    def _own(self) -> int:
        if set(str(self.path)) & set("[]{}*?\\"):
            raise InvalidConfig(
                f"Spark takes {self.path} for a pattern: choose a directory without any of "
                f"[]{{}}*?\\ in its name"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise PipelineFailed(
                f"cannot use {self.path}: {error.strerror}; choose a directory you can write to"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise PipelineFailed(
                f"another process runs a pipeline in {self.path}: stop it, or choose another "
                "directory"
            ) from None
        return fd

    def release(self) -> None:
        self.edges.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def checkpoint(self, operator: str) -> Checkpoint:
        return Checkpoint(self.kept / "checkpoints" / operator)

    def progress(self, operator: str) -> Path:
        return self.path / "progress" / operator

    def limit_file(self, operator: str) -> Path:
        return self.path / f"limit.{operator}"

    def started_at(self, name: str) -> float:
        """When the pipeline ``name`` first started here: generated loads count from there, also
        after a restart.
        """
        file = self.kept / "pipeline.json"
        if not file.exists():
            at = time.time()
            identity = msgspec.json.encode({"name": name, "started_at": at})
            replace(file, identity, durable=self.durability == "power")
            return at
        try:
            written = msgspec.json.decode(file.read_bytes(), type=dict[str, str | float])
            owner, at = str(written["name"]), float(written["started_at"])
        except (msgspec.DecodeError, KeyError, ValueError) as error:
            raise PipelineFailed(
                f"{file} cannot be read ({error}): restore it, or start in another directory"
            ) from error
        if owner != name:
            raise InvalidConfig(
                f"{self.kept} belongs to pipeline '{owner}', not to '{name}': choose another"
            )
        return at

    def save_replicas(self, replicas: Mapping[str, int]) -> None:
        file = self.kept / "replicas.json"
        try:
            replace(file, msgspec.json.encode(replicas))
        except OSError as error:
            raise ActuationError(
                f"cannot write {file}: {error.strerror}; replicas stay as they are"
            ) from error

    def saved_replicas(self) -> dict[str, int]:
        """The replicas last set, also where no batch has used them yet; empty when there are none
        that can be read.
        """
        try:
            return msgspec.json.decode(
                (self.kept / "replicas.json").read_bytes(), type=dict[str, int]
            )
        except (OSError, msgspec.DecodeError):
            return {}

    def save_service_times(self, seconds: Mapping[str, float]) -> None:
        try:
            replace(self.kept / "service_times.json", msgspec.json.encode(seconds))
        except OSError as error:
            log.warning("service times are not kept for the next start: %s", error)

    def saved_service_times(self) -> dict[str, float]:
        """Busy seconds per event and operator that an earlier run learned; empty when there are
        none that can be read.
        """
        try:
            saved = msgspec.json.decode(
                (self.kept / "service_times.json").read_bytes(), type=dict[str, float]
            )
        except (OSError, msgspec.DecodeError):
            return {}
        return {name: s for name, s in saved.items() if s > 0}
