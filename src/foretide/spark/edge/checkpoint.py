"""Reads the offset log in a query's checkpoint: what a micro-batch takes from each of its sources.

Spark writes this log before it runs a batch and finds the same there on a replay, so counts taken
from it are exact across crashes. An operator's inputs are a union with its edges last: the last
line of a batch's offsets is theirs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from foretide.errors import PipelineFailed
from foretide.spark.edge.durable import sync
from foretide.spark.edge.store import Place, StorePath


@dataclass(frozen=True, slots=True)
class Offsets:
    """Of one batch, per source in order: where it starts (None for the first batch) and where it
    ends.
    """

    start: tuple[Any, ...]
    end: tuple[Any, ...]


class Checkpoint:
    """The checkpoint folder of one query."""

    def __init__(self, root: Place) -> None:
        self.root = root

    def last_batch(self) -> int | None:
        """The newest batch whose offsets were logged; None before the first."""
        newest = self._newest("offsets")
        return None if newest is None else int(newest.name)

    def _newest(self, kind: str) -> Place | None:
        place = self.root / kind
        if place.is_file():
            return place
        return max(
            (f for f in place.glob("*") if f.name.isdigit()),
            key=lambda f: int(f.name),
            default=None,
        )

    @property
    def begun(self) -> bool:
        """Whether a batch was ever logged here."""
        return self.last_batch() is not None

    def last_commit(self) -> int:
        """The newest batch that Spark has committed; -1 before the first."""
        newest = self._newest("commits")
        return -1 if newest is None else int(newest.name)

    def torn(self, kind: str) -> int | None:
        """The newest batch in ``offsets`` or ``commits`` if its file cannot be read; else None."""
        if (newest := self._newest(kind)) is None:
            return None
        try:
            self._parsed(newest, least=2 if kind == "offsets" else 1)
        except PipelineFailed:
            return int(newest.name)
        return None

    def remove(self, kind: str, batch: int) -> None:
        """Remove a torn file of Spark's, with its checksum."""
        self._drop(self.root / kind / str(batch))

    def remove_torn_metadata(self) -> None:
        file = self.root / "metadata"
        try:
            self._parsed(file)
        except PipelineFailed:
            self._drop(file)

    @staticmethod
    def _drop(file: Place) -> None:
        file.unlink(missing_ok=True)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    def settle(self, batch: int) -> None:
        """Return when the commit of a batch is on the disk, for those who delete its input next."""
        file = self.root / "commits" / str(batch)
        if not isinstance(file, StorePath) and file.exists():
            sync(file)
            sync(file.parent)

    def check(self) -> None:
        """Raise one clear sentence when what Spark needs to go on from cannot be read."""
        if (last := self.last_batch()) is not None:
            self.offsets(last)
        for kind in ("metadata", "commits"):
            if (newest := self._newest(kind)) is not None:
                self._parsed(newest)

    def offsets(self, batch: int) -> Offsets:
        end = self._read(batch)
        known = batch > 0 and (self.root / "offsets" / str(batch - 1)).exists()
        return Offsets(self._read(batch - 1) if known else (None,) * len(end), end)

    def instant(self, batch: int) -> float:
        """When Spark logged the batch, in seconds; a replay finds the same."""
        return float(self._lines(batch)[0]["batchTimestampMs"]) / 1e3

    def _read(self, batch: int) -> tuple[Any, ...]:
        return self._lines(batch)[1:]

    def _lines(self, batch: int) -> tuple[Any, ...]:
        """What is known of a batch, then its offsets per source."""
        return self._parsed(self.root / "offsets" / str(batch), least=2)

    @staticmethod
    def _parsed(file: Place, least: int = 1) -> tuple[Any, ...]:
        """The lines of one of Spark's small files, after the line with its version where it has
        one.
        """
        try:
            lines = file.read_text().splitlines()
            if file.name.isdigit():
                lines = lines[1:] if lines and lines[0].startswith("v") else []
            if len(lines) < least:
                raise ValueError("it is empty or torn")
            return tuple(None if line == "-" else json.loads(line) for line in lines)
        except (OSError, ValueError) as error:
            raise PipelineFailed(
                f"the checkpoint file {file} cannot be read ({error}): nothing was deleted; "
                "restore the checkpoint folder from a "
                "copy, or start the pipeline anew in another directory"
            ) from error
