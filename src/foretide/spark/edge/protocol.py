"""What an edge between operators does, whatever it is made of: directories (``directory``), Kafka.

An operator delivers batches through its ``Output`` and takes them through its ``Input``. Exactly
once rests on three promises that every implementation keeps:

1. ``Output.deliver`` is atomic: all files of a batch and its manifest become visible together, or
   nothing does. What an attempt wrote that was never delivered is never read.
2. ``Output.has`` is true for every batch that was delivered, also after a crash: a replay skips it.
3. ``Input.between`` returns the same pieces for the same offsets until they are discarded; the
   query discards the pieces of a batch after Spark has committed it, never before.

Manifests carry running totals, so the newest one of each operator says how many events each edge
ever carried and how many its consumer is done with: backlogs are exact, also after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from foretide.model import Array

Durability = Literal["process", "power"]
"""What a delivered batch survives: the end of any process, or a power cut as well."""

File = tuple[str, int]
"""A piece of a batch by name, and the events in it: a file, or a range of a Kafka partition."""

Offsets = Mapping[str, str]
"""How far a consumer has read, per producer. What the text means is the edge's own business."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an operator had done when a batch was delivered: totals since the pipeline first
    started.

    ``consumed`` is per input (operators and sources), ``delivered`` per reader's folder
    (``to.<consumer>``, ``sink.<name>``, ``dead``); ``files`` are this batch's own.
    """

    batch: int
    at: float
    replicas: int
    consumed: Mapping[str, int] = field(default_factory=dict)
    delivered: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, tuple[File, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """How far a reader is in the batches of a producer: all before ``batch``, and the first
    ``files`` files of it.

    >>> Position.parse(str(Position(12, 3))) == Position(12, 3)
    True
    """

    batch: int = 0
    files: int = 0

    def __str__(self) -> str:
        return f"{self.batch}.{self.files}"

    @classmethod
    def parse(cls, text: str) -> Position:
        batch, _, files = text.partition(".")
        return cls(int(batch), int(files))


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a delivered batch that waits for a reader; the reader is at ``after`` once it has
    read it. ``name`` says where it is, in the edge's own terms: for a directory, the file's path.
    """

    name: str
    events: int
    delivered_at: float
    after: Position


@dataclass(frozen=True, slots=True)
class Outlet:
    """Events that are written once, with these columns, for every reader in ``folders``."""

    columns: tuple[str, ...]
    folders: tuple[str, ...]


class Output(Protocol):
    """The delivered batches of one operator. One writer: the operator's own query."""

    def create(self) -> None:
        """Make ready for the first batch. Called when nothing was delivered yet."""
        ...

    def newest(self) -> int:
        """The newest delivered batch; -1 before the first."""
        ...

    def has(self, batch: int) -> bool:
        """Whether this batch was delivered. Raises PipelineFailed when the edge is gone."""
        ...

    def latest(self) -> Manifest | None:
        """The newest manifest; None before the first delivery."""
        ...

    def stage(self, batch: int) -> Path:
        """An empty local folder in which the batch is put together: one folder per reader. Private
        to this start of the pipeline.
        """
        ...

    def write(
        self, frame: DataFrame, outlets: Mapping[str, Outlet], staging: Path, per_file: int
    ) -> None:
        """Write the events for a staged batch in one pass, ``per_file`` of them in a piece at most
        (0: no limit). Column ``_to`` names an event's outlet; without it there is only one.
        """
        ...

    def collect(self, outlets: Mapping[str, Outlet], staging: Path) -> dict[str, tuple[File, ...]]:
        """What was written, as one folder per reader in ``staging``; the pieces of each."""
        ...

    def stamps(
        self, staging: Path, files: Mapping[str, Sequence[File]]
    ) -> tuple[Array, float, float] | None:
        """(a summary of the stamps, how many, their sum) of what the first reader gets."""
        ...

    def frame(
        self, spark: SparkSession, schema: StructType, folder: str, batch: int | None = None
    ) -> DataFrame | None:
        """What one reader's folder holds, of one batch (None: nothing) or of all there are."""
        ...

    def deliver(self, staging: Path, manifest: Manifest) -> None:
        """Make a staged batch visible at once, with its manifest."""
        ...

    def release(self, batch: int, folder: str) -> None:
        """Remove what a delivered batch holds for one reader, which has taken it."""
        ...

    def sweep(self) -> None:
        """Forget batches that nobody needs any more. Bounded work per call."""
        ...


class Input(Protocol):
    """The batches that wait for one consumer."""

    producers: tuple[str, ...]

    @property
    def on_disk(self) -> bool:
        """Whether all its pieces are Parquet files that executors can read."""
        ...

    def start(self) -> dict[str, str]:
        """Offsets before the first event of every producer."""
        ...

    def advance(self, start: Offsets, limit: int) -> dict[str, str]:
        """Offsets after the oldest waiting pieces, as many as hold ``limit`` events, and at least
        one piece when any waits.
        """
        ...

    def between(self, start: Offsets, end: Offsets) -> dict[str, list[Piece]]:
        """The pieces of one batch, by producer."""
        ...

    def discard(self, pieces: Sequence[Piece]) -> None:
        """Remove pieces whose batch is committed. Idempotent."""
        ...

    def frame(
        self, spark: SparkSession, schema: StructType, pieces: Sequence[Piece], tasks: int = 1
    ) -> DataFrame:
        """The events of some pieces. ``tasks`` is into how many the reading may be split."""
        ...

    def stream(
        self, spark: SparkSession, schema: StructType, limit_file: Path, pause_s: float
    ) -> DataFrame:
        """All that waits, as a stream whose offsets are those of ``advance``. A batch takes as many
        events as ``limit_file`` says; batches begin ``pause_s`` seconds apart or more.
        """
        ...


class Edges(Protocol):
    """All edges of one pipeline. ``shares_disk``: executors use the pipeline's folder."""

    @property
    def shares_disk(self) -> bool: ...

    def output(self, operator: str) -> Output: ...

    def input(self, consumer: str, producers: Sequence[str]) -> Input: ...

    def close(self) -> None:
        """Let go of what is held open. Idempotent."""
        ...


def plus(totals: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Key by key sums.

    >>> plus({"a": 1}, {"a": 2, "b": 3})
    {'a': 3, 'b': 3}
    """
    return {
        k: totals.get(k, 0) + more.get(k, 0)
        for k in (*totals, *(k for k in more if k not in totals))
    }
