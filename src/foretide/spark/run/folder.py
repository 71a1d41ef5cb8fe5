"""The folder of one pipeline: its lock, its identity, the replicas last set, the check of what is on
disk.

Layout::

    lock               held by the process that runs the pipeline
    pipeline.json      name, and when the pipeline first started here
    replicas.json      replicas per operator, as last set
    limit.<operator>   events that the operator's next batch takes at most
    edges/ checkpoints/
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from foretide.errors import ActuationError, InvalidConfig, PipelineFailed
from foretide.files import replace_file
from foretide.spark.edge.checkpoint import Checkpoint
from foretide.spark.edge.edges import Outbox


class RunFolder:
    """Owned by one process from construction to ``release``."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).absolute()
        self._lock = self._own()

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
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @property
    def edges(self) -> Path:
        return self.path / "edges"

    def outbox(self, operator: str) -> Outbox:
        return Outbox(self.edges / operator)

    def checkpoint(self, operator: str) -> Checkpoint:
        return Checkpoint(self.path / "checkpoints" / operator)

    def limit_file(self, operator: str) -> Path:
        return self.path / f"limit.{operator}"

    def started_at(self, name: str) -> float:
        """When the pipeline ``name`` first started here: generated loads count from there, also
        after a restart.
        """
        file = self.path / "pipeline.json"
        if not file.exists():
            at = time.time()
            replace_file(file, msgspec.json.encode({"name": name, "started_at": at}))
            return at
        try:
            identity = msgspec.json.decode(file.read_bytes(), type=dict[str, str | float])
            owner, at = str(identity["name"]), float(identity["started_at"])
        except (msgspec.DecodeError, KeyError, ValueError) as error:
            raise PipelineFailed(
                f"{file} cannot be read ({error}): restore it, or start in another directory"
            ) from error
        if owner != name:
            raise InvalidConfig(
                f"{self.path} belongs to pipeline '{owner}', not to '{name}': choose another"
            )
        return at

    def save_replicas(self, replicas: Mapping[str, int]) -> None:
        file = self.path / "replicas.json"
        try:
            replace_file(file, msgspec.json.encode(replicas))
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
                (self.path / "replicas.json").read_bytes(), type=dict[str, int]
            )
        except (OSError, msgspec.DecodeError):
            return {}

    def check_disk(self, operator: str) -> None:
        """Every logged batch was delivered, except perhaps the last one. Anything else on disk is a
        loss or an old copy.
        """
        checkpoint, outbox = self.checkpoint(operator), self.outbox(operator)
        checkpoint.check()
        if (last := checkpoint.last_batch()) is None:
            outbox.create()
        logged, delivered = -1 if last is None else last, max(outbox.batches(), default=-1)
        if delivered not in (logged, max(-1, logged - 1)):
            raise PipelineFailed(
                f"operator '{operator}': the newest batch is {delivered} in {outbox.root} but "
                f"{logged} in {checkpoint.root} (-1: none), so one of them is lost or an old copy: "
                "nothing was deleted; restore both from the same moment, or start the pipeline "
                "anew in another directory"
            )
