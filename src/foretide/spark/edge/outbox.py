"""Batches in a directory: atomic, replay-safe delivery, with exact counts.

Every operator owns one outbox. A batch is put together in a staging folder that holds one folder
per reader (consumer, sink or dead letters) and a manifest, and becomes visible by one rename to
``b-<batch>``: all outputs at once or none. A batch whose folder exists was delivered, so a replay
skips it.

Layout::

    edges/<operator>/newest                           a hint: some recent batch
    edges/<operator>/b-12/manifest.json
    edges/<operator>/b-12/to.<consumer>/*.parquet     removed when the consumer's next batch starts
    edges/<operator>/b-12/sink.<name>/*.parquet       kept: this is a sink's data
    edges/<operator>/b-12/dead/*.parquet              kept: events whose function raised
    edges/<operator>/.staging-<start>-<batch>         being put together by one start of the driver

The folder is listed once per start. After that every look costs the same however many batches lie
there: the newest is found from the hint. This module knows files; it knows nothing of Spark.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections import deque
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from foretide.errors import PipelineFailed
from foretide.files import replace_file
from foretide.spark.edge.durable import sync, sync_all
from foretide.spark.edge.protocol import Durability, File, Manifest

SWEEP = 100
"""Batches that one sweep looks at, at most."""

_decoder = msgspec.json.Decoder(Manifest)


class Outbox:
    """The batches that one operator has delivered. One writer: the operator's own query. Readers
    have instances of their own, also in other processes.
    """

    def __init__(self, root: Path, durability: Durability = "process") -> None:
        self.root = root
        self.power = durability == "power"
        self._token = secrets.token_hex(4)
        self._staged = False
        self._open: deque[int] | None = None

    def create(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PipelineFailed(
                f"cannot create the edge directory {self.root}: {error.strerror}"
            ) from error

    def batches(self, start: int = 0) -> list[int]:
        """Delivered batches from ``start`` on that are still there, oldest first. Lists them all:
        for a start, not for every look.
        """
        try:
            listed = [int(name[2:]) for name in os.listdir(self.root) if name.startswith("b-")]
        except FileNotFoundError:
            raise PipelineFailed(
                f"the edge directory {self.root} is gone: nothing was deleted by Foretide; restore "
                "it, or start the pipeline anew in another directory"
            ) from None
        return sorted(b for b in listed if b >= start)

    def newest(self) -> int:
        """The newest delivered batch; -1 before the first. The hint is at most one batch behind,
        as ``deliver`` writes it; where its batch is gone, all are listed.
        """
        try:
            at = int((self.root / "newest").read_text())
        except (OSError, ValueError):
            at = -1
        if at < 0 or not self.folder(at).exists():
            at = max(self.batches(), default=-1)
        while self.folder(at + 1).exists():
            at += 1
        return at

    def renew_hint(self) -> None:
        """Make the hint right after a crash, from a listing."""
        if (newest := max(self.batches(), default=-1)) >= 0:
            replace_file(self.root / "newest", str(newest).encode())

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

    def torn(self, batch: int) -> bool:
        """Whether the manifest of a batch that is there cannot be read."""
        try:
            self.manifest(batch)
        except PipelineFailed:
            return self.folder(batch).exists()
        return False

    def still(self, batch: int) -> Manifest | None:
        """The manifest of a batch, or None when its writer has swept it: then it holds nothing for
        any reader.
        """
        try:
            return self.manifest(batch)
        except PipelineFailed:
            if self.folder(batch).exists():
                raise
            return None

    def latest(self) -> Manifest | None:
        """The newest manifest, or None before the first delivery."""
        newest = self.newest()
        return None if newest < 0 else self.manifest(newest)

    def stage(self, batch: int) -> Path:
        """An empty folder for a batch in the making, which no other start of the driver uses. What
        crashes left is removed.
        """
        if not self._staged:
            for left in self.root.glob(".staging-*"):
                shutil.rmtree(left, ignore_errors=True)
            self._staged = True
        staging = self.root / f".staging-{self._token}-{batch}"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        return staging

    def deliver(self, staging: Path, manifest: Manifest) -> None:
        """Make a staged batch visible: manifest first, then one rename.

        The batch before stays until this one is there. Where it is missing, the directory was taken
        away while Spark wrote. With ``power`` all that the batch consists of, and the log of what
        it took, is on the disk before the rename, and the rename is before this returns.
        """
        if manifest.batch > 0 and not self.folder(manifest.batch - 1).exists():
            raise PipelineFailed(
                f"batch {manifest.batch - 1} has vanished from the edge directory {self.root}: "
                "nothing was deleted by Foretide; restore it, or start the pipeline anew in "
                "another directory"
            )
        (staging / "manifest.json").write_bytes(msgspec.json.encode(manifest))
        if self.power:
            sync_all(staging)
        os.rename(staging, self.folder(manifest.batch))
        if self.power:
            sync(self.root)
        replace_file(self.root / "newest", str(manifest.batch).encode())
        if self._open is not None:
            self._open.append(manifest.batch)

    def sweep(self) -> None:
        """Remove batch folders that hold nothing but a manifest; the newest stays, for its totals
        and against replay.

        Those with nothing left but what a sink keeps are not looked at again. Each call looks at a
        bounded number, in turn.
        """
        if self._open is None:
            self._open = deque(self.batches())
        for _ in range(min(SWEEP, len(self._open) - 1)):
            batch = self._open.popleft()
            try:
                held = os.listdir(self.folder(batch))
            except FileNotFoundError:  # the output folder has all of it
                continue
            if held == ["manifest.json"]:
                self.drop(self.folder(batch))
            elif any(name.startswith("to.") for name in held):
                self._open.insert(len(self._open) - 1, batch)

    def on_disk(self, folder: str) -> bool:
        """Whether one reader's events are files in its folder."""
        return True

    def holds(self, batch: int, folder: str) -> bool:
        """Whether a reader's part of a delivered batch is still to be had."""
        return (self.folder(batch) / folder).is_dir()

    def release(self, batch: int, folder: str) -> None:
        """Remove what a delivered batch holds for one reader, which has taken it."""
        self.drop(self.folder(batch) / folder)

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


def share(files: Iterable[Path], others: Iterable[Path]) -> None:
    """Give the same files to more readers: hard links, so each reader removes its own; copies where
    links are not possible.
    """
    held = list(files)
    for other in others:
        other.mkdir(exist_ok=True)
        for file in held:
            try:
                os.link(file, other / file.name)
            except OSError:
                shutil.copy2(file, other / file.name)


def move(folder: Path, target: Path) -> None:
    """Make ``folder`` the folder ``target``, or add its files to the one that is there."""
    if not target.exists():
        os.rename(folder, target)
        return
    for file in folder.iterdir():
        os.rename(file, target / file.name)
