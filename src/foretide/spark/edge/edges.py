"""Edges as directories: atomic, replay-safe delivery between operators, with exact counts.

Every operator owns one outbox. A batch is written to a staging folder that holds one folder per
reader (consumer, sink or dead letters) and a manifest, and becomes visible by one rename to
``b-<batch>``: all outputs at once or none. A batch whose folder exists was delivered, so a replay
skips it. Manifests list files with their counts and carry running totals, hence the newest one of
each operator says exactly how many events each edge ever carried, and how many of them its consumer
is done with.

Layout::

    edges/<operator>/b-12/manifest.json
    edges/<operator>/b-12/to.<consumer>/*.parquet     removed when the consumer's next batch starts
    edges/<operator>/b-12/sink.<name>/*.parquet       kept: this is a sink's data
    edges/<operator>/b-12/dead/*.parquet              kept: events whose function raised

This module knows files; it knows nothing of Spark.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from foretide.errors import PipelineFailed

File = tuple[str, int]
"""A file's name and the events in it."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an operator had done when a batch was delivered: totals since the pipeline first
    started.

    ``consumed`` is per input (operators and sources), ``delivered`` per folder of the outbox;
    ``files`` are this batch's own.
    """

    batch: int
    at: float
    replicas: int
    consumed: Mapping[str, int] = field(default_factory=dict)
    delivered: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, tuple[File, ...]] = field(default_factory=dict)


_decoder = msgspec.json.Decoder(Manifest)


def plus(totals: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Key by key sums.

    >>> plus({"a": 1}, {"a": 2, "b": 3})
    {'a': 3, 'b': 3}
    """
    return {
        k: totals.get(k, 0) + more.get(k, 0)
        for k in (*totals, *(k for k in more if k not in totals))
    }


class Outbox:
    """The batches that one operator has delivered. One writer: the operator's own query."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._kept: set[int] = set()

    def create(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PipelineFailed(
                f"cannot create the edge directory {self.root}: {error.strerror}"
            ) from error

    def batches(self, start: int = 0) -> list[int]:
        """Delivered batches from ``start`` on that are still there, oldest first."""
        try:
            found = [int(name[2:]) for name in os.listdir(self.root) if name.startswith("b-")]
        except FileNotFoundError:
            raise PipelineFailed(
                f"the edge directory {self.root} is gone: nothing was deleted by Foretide; restore "
                "it, or start the pipeline anew "
                "in another directory"
            ) from None
        return sorted(b for b in found if b >= start)

    def folder(self, batch: int) -> Path:
        return self.root / f"b-{batch}"

    def has(self, batch: int) -> bool:
        """Whether this batch was delivered before. Raises when the whole outbox has vanished."""
        return self.folder(batch).exists() or (not self.root.is_dir() and batch in self.batches())

    def manifest(self, batch: int) -> Manifest:
        file = self.folder(batch) / "manifest.json"
        try:
            return _decoder.decode(file.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            raise PipelineFailed(
                f"{file} cannot be read ({error}): restore it from a copy, or start the pipeline "
                "anew in another directory"
            ) from error

    def still(self, batch: int) -> Manifest | None:
        """The manifest of a batch that was listed, or None when its writer has swept it since: then
        it holds nothing for anybody.
        """
        try:
            return self.manifest(batch)
        except PipelineFailed:
            if self.folder(batch).exists():
                raise
            return None

    def latest(self) -> Manifest | None:
        """The newest manifest, or None before the first delivery."""
        batches = self.batches()
        return self.manifest(batches[-1]) if batches else None

    def stage(self, batch: int) -> Path:
        """An empty folder for a batch in the making. What a crash left there is replaced."""
        staging = self.root / f".staging-{batch}"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        return staging

    def deliver(self, staging: Path, manifest: Manifest) -> None:
        """Make a staged batch visible: manifest first, then one rename.

        The batch before stays until this one is there. Where it is missing, somebody took the
        directory away while Spark wrote.
        """
        if manifest.batch > 0 and not self.folder(manifest.batch - 1).exists():
            raise PipelineFailed(
                f"batch {manifest.batch - 1} has vanished from the edge directory {self.root}: "
                "nothing was deleted by Foretide; "
                "restore it, or start the pipeline anew in another directory"
            )
        (staging / "manifest.json").write_bytes(msgspec.json.encode(manifest))
        os.rename(staging, self.folder(manifest.batch))

    def sweep(self) -> None:
        """Remove batch folders that hold nothing but a manifest; the newest stays, for its totals
        and against replay.

        Those with nothing left but what a sink keeps are not looked at again: after a day there are
        tens of thousands of them.
        """
        for batch in self.batches()[:-1]:
            if batch in self._kept:
                continue
            folder = self.folder(batch)
            if (held := os.listdir(folder)) == ["manifest.json"]:
                self.drop(folder)
            elif not any(name.startswith("to.") for name in held):
                self._kept.add(batch)

    def drop(self, folder: Path) -> None:
        """Remove a folder by one rename, so that a reader, or a replay, finds it whole or not at
        all.
        """
        swept = self.root / ".swept"
        shutil.rmtree(swept, ignore_errors=True)
        os.rename(folder, swept)
        shutil.rmtree(swept, ignore_errors=True)


def tidy(folder: Path) -> tuple[File, ...]:
    """Keep only the data files that hold events; their names and counts (from the footers), in
    reading order.
    """
    kept = []
    for file in sorted(folder.iterdir()):
        count = int(pq.ParquetFile(file).metadata.num_rows) if file.suffix == ".parquet" else 0
        if count:
            kept.append((file.name, count))
        else:
            file.unlink()
    return tuple(kept)


def share(folder: Path, others: Iterable[Path]) -> None:
    """Give the same files to more readers: hard links, so each reader removes its own; copies where
    links are not possible.
    """
    for other in others:
        other.mkdir()
        for file in folder.iterdir():
            try:
                os.link(file, other / file.name)
            except OSError:
                shutil.copy2(file, other / file.name)


def discard(files: Sequence[Path]) -> None:
    """Remove files that were consumed, and their folders once empty."""
    for file in files:
        file.unlink(missing_ok=True)
    for folder in {f.parent for f in files}:
        try:
            folder.rmdir()
        except OSError:
            continue


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """How far a reader is in an outbox: all batches before ``batch``, and the first ``files`` files
    of it.

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
    """One file that waits for a reader, with where the reader stands after it."""

    path: Path
    events: int
    delivered_at: float
    after: Position


class Inbox:
    """What one consumer has still to read from its producers' outboxes."""

    def __init__(self, edges: Path, consumer: str, producers: Sequence[str]) -> None:
        self.producers = tuple(producers)
        self._folder = f"to.{consumer}"
        self._outboxes = {p: Outbox(edges / p) for p in producers}

    def start(self) -> dict[str, str]:
        return {p: str(Position()) for p in self.producers}

    def pieces(
        self, producer: str, start: Position, end: Position | None = None, limit: int | None = None
    ) -> list[Piece]:
        """Files after ``start`` (up to ``end``), oldest first; looking no further once they hold
        ``limit`` events.
        """
        outbox = self._outboxes[producer]
        found: list[Piece] = []
        for batch in outbox.batches(start.batch):
            if (end is not None and batch > end.batch) or (
                limit is not None and sum(p.events for p in found) >= limit
            ):
                break
            if (manifest := outbox.still(batch)) is None:
                continue
            files = manifest.files.get(self._folder, ())
            for i, (name, events) in enumerate(files):
                after = Position(batch, i + 1)
                if after > start and (end is None or after <= end):
                    found.append(
                        Piece(
                            outbox.folder(batch) / self._folder / name, events, manifest.at, after
                        )
                    )
        return found

    def advance(self, start: Mapping[str, str], limit: int) -> dict[str, str]:
        """Positions after the oldest waiting files, as many as hold ``limit`` events, and at least
        one when any waits.
        """
        reached, events = (
            {**self.start(), **start},
            0,
        )  # an input that was added since has no position yet
        waiting = [
            (piece, p)
            for p in self.producers
            for piece in self.pieces(p, Position.parse(reached[p]), limit=limit)
        ]
        waiting.sort(key=lambda w: w[0].delivered_at)
        for piece, producer in waiting:
            if events and events + piece.events > limit:
                break
            events += piece.events
            reached[producer] = str(piece.after)
        return reached

    def between(self, start: Mapping[str, str], end: Mapping[str, str]) -> dict[str, list[Piece]]:
        """The files of one batch, by producer."""
        start, end = {**self.start(), **start}, {**self.start(), **end}
        return {
            p: self.pieces(p, Position.parse(start[p]), Position.parse(end[p]))
            for p in self.producers
            if start[p] != end[p]
        }
