"""The delivered batches of one operator as objects of a store: one manifest each, created once.

The same promises as an ``Outbox``, without folders and renames: a batch is delivered when its
manifest is there. What readers have taken is not marked in the store; the driver knows it, and
removes manifests that nobody needs.

Layout::

    edges/<operator>/b-12.json            the manifest of a delivered batch
    edges/<operator>/newest               a hint: some recent batch
    edges/<operator>/released.sink.<name> the newest batch that a user's writer has taken
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from foretide.errors import PipelineFailed
from foretide.spark.edge.outbox import SWEEP
from foretide.spark.edge.protocol import Manifest, Position
from foretide.spark.edge.store import StorePath, taken

_decoder = msgspec.json.Decoder(Manifest)


class StoredBatches:
    """The batches of one operator. One writer: the operator's own query. Readers have instances of
    their own, also in other processes.

    ``read_up_to`` says how far a reader's committed batches are; Position() when it is not known.
    """

    def __init__(
        self, root: StorePath, read_up_to: Callable[[str], Position] = lambda reader: Position()
    ) -> None:
        self.root = root
        self._read_up_to = read_up_to
        self._at = -1
        self._open: deque[int] | None = None
        self._known: dict[int, Manifest] = {}
        self._staging: Path | None = None

    def create(self) -> None:
        """A store has no folders to make."""

    def batches(self, start: int = 0) -> list[int]:
        """Delivered batches from ``start`` on that are still there, oldest first."""
        names = [place.name for place in self.root.glob()]
        listed = [int(n[2:-5]) for n in names if n.startswith("b-") and n.endswith(".json")]
        return sorted(b for b in listed if b >= start)

    def newest(self) -> int:
        """The hint is at most one batch behind, as ``deliver`` writes it; where its batch is gone,
        all are listed. A look that finds nothing new costs two requests.
        """
        try:
            at = max(int((self.root / "newest").read_text()), self._at)
        except (FileNotFoundError, ValueError):
            at = self._at
        if at < 0 or (at != self._at and not self.has(at)):
            at = max(self.batches(), default=-1)
        while self.has(at + 1):
            at += 1
        self._at = at
        return at

    def folder(self, batch: int) -> StorePath:
        """What the names of a batch's pieces begin with; no such object exists."""
        return self.root / f"b-{batch}"

    def _object(self, batch: int) -> StorePath:
        return self.root / f"b-{batch}.json"

    def has(self, batch: int) -> bool:
        return self._object(batch).is_file()

    def still(self, batch: int) -> Manifest | None:
        """The manifest of a batch, or None when it was never delivered or nobody needs it."""
        file = self._object(batch)
        try:
            return _decoder.decode(file.read_bytes())
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise PipelineFailed(
                f"{file} cannot be read ({error}): restore it from a copy, or start the pipeline "
                "anew with another store"
            ) from error

    def manifest(self, batch: int) -> Manifest:
        found = self.still(batch)
        if found is None:
            raise PipelineFailed(
                f"{self._object(batch)} is gone: nothing was deleted by Foretide; restore it, or "
                "start the pipeline anew with another store"
            )
        return found

    def latest(self) -> Manifest | None:
        newest = self.newest()
        return None if newest < 0 else self.manifest(newest)

    def torn(self, batch: int) -> bool:
        """An object is there whole or not at all."""
        return False

    def renew_hint(self) -> None:
        """Make the hint right after a crash, from a listing."""
        if (newest := max(self.batches(), default=-1)) >= 0:
            (self.root / "newest").write_bytes(str(newest).encode())

    def stage(self, batch: int) -> Path:
        """An empty folder on the driver's disk."""
        if self._staging is not None:
            shutil.rmtree(self._staging, ignore_errors=True)
        self._staging = Path(tempfile.mkdtemp(prefix="foretide-")) / f"batch-{batch}"
        self._staging.mkdir()
        return self._staging

    def deliver(self, staging: Path, manifest: Manifest) -> None:
        file = self._object(manifest.batch)
        try:
            file.create(msgspec.json.encode(manifest))
        except FileExistsError:
            raise taken(file, self.root.name) from None
        shutil.rmtree(staging.parent, ignore_errors=True)
        (self.root / "newest").write_bytes(str(manifest.batch).encode())
        if self._open is not None:
            self._open.append(manifest.batch)
            self._known[manifest.batch] = manifest

    def holds(self, batch: int, folder: str) -> bool:
        """Whether a reader's part of a delivered batch is still to be had."""
        try:
            return batch > int((self.root / f"released.{folder}").read_text())
        except (FileNotFoundError, ValueError):
            return True

    def release(self, batch: int, folder: str) -> None:
        (self.root / f"released.{folder}").write_bytes(str(batch).encode())

    def sweep(self) -> None:
        """Remove manifests whose readers have committed what is in them; the newest stays, for its
        totals and against replay, and so do those of sinks that keep their events. Each call looks
        at a bounded number.
        """
        if self._open is None:
            self._open = deque(self.batches())
        for _ in range(min(SWEEP, len(self._open) - 1)):
            batch = self._open[0]
            manifest = self._known[batch] = self._known.get(batch) or self.manifest(batch)
            if any(not self._read(manifest, f) for f in manifest.files if f.startswith("to.")):
                return
            self._open.popleft()
            del self._known[batch]
            if not any(self._keeps(manifest, f) for f in manifest.files):
                self._object(batch).unlink(missing_ok=True)

    def _read(self, manifest: Manifest, folder: str) -> bool:
        return self._read_up_to(folder) >= Position(manifest.batch, len(manifest.files[folder]))

    def _keeps(self, manifest: Manifest, folder: str) -> bool:
        return not folder.startswith("to.") and self.holds(manifest.batch, folder)
