"""What one consumer has still to read from its producers' outboxes. Files only, no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from foretide.spark.edge.outbox import Outbox
from foretide.spark.edge.protocol import Piece, Position
from foretide.spark.edge.store import Place, StorePath
from foretide.spark.edge.stored import StoredBatches

FEW = 1000
"""Batches that are looked up by name one by one rather than listed."""


def batches_at(place: Place) -> Outbox | StoredBatches:
    """The delivered batches of one operator, for its readers."""
    return StoredBatches(place) if isinstance(place, StorePath) else Outbox(place)


class Inbox:
    """The files that wait for one consumer. A look costs what is new since the last one, not what
    lies there.
    """

    def __init__(self, edges: Place, consumer: str, producers: Sequence[str]) -> None:
        self.edges = edges
        self.consumer = consumer
        self.producers = tuple(producers)
        self._folder = f"to.{consumer}"
        self._outboxes = {p: batches_at(edges / p) for p in producers}
        self._low: dict[str, int] = {}

    def start(self) -> dict[str, str]:
        return {p: str(Position()) for p in self.producers}

    def pieces(
        self, producer: str, start: Position, end: Position | None = None, limit: int | None = None
    ) -> list[Piece]:
        """Files after ``start`` (up to ``end``), oldest first; looking no further once they hold
        ``limit`` events.
        """
        outbox = self._outboxes[producer]
        waiting: list[Piece] = []
        events = 0
        for batch in self._batches(producer, start, end):
            if limit is not None and events >= limit:
                break
            if (manifest := outbox.still(batch)) is not None:
                for i, (name, count) in enumerate(manifest.files.get(self._folder, ())):
                    after = Position(batch, i + 1)
                    if after > start and (end is None or after <= end):
                        path = outbox.folder(batch) / self._folder / name
                        waiting.append(Piece(str(path), count, manifest.at, after))
                        events += count
            if end is None and not waiting:
                self._low[producer] = batch
        return waiting

    def _batches(self, producer: str, start: Position, end: Position | None) -> Sequence[int]:
        """Batches to look at, oldest first. The first look, and a long way between two offsets,
        lists what is there; later looks start at the last batch that held nothing for this
        consumer.
        """
        outbox, low = self._outboxes[producer], self._low.get(producer)
        if end is not None and end.batch - start.batch < FEW:
            return range(start.batch, end.batch + 1)
        if end is not None:
            return [b for b in outbox.batches(start.batch) if b <= end.batch]
        if low is None:
            listed = outbox.batches(start.batch)
            self._low[producer] = listed[0] if listed else start.batch
            return listed
        return range(max(start.batch, low), outbox.newest() + 1)

    def advance(self, start: Mapping[str, str], limit: int) -> dict[str, str]:
        """Positions after the oldest waiting files, as many as hold ``limit`` events, and at least
        one when any waits. An input that was added since has no position in ``start`` yet.
        """
        reached, events = {**self.start(), **start}, 0
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

    def discard(self, pieces: Sequence[Piece]) -> None:
        """Remove files that were consumed, and their folders once empty."""
        files = [Path(p.name) for p in pieces]
        for file in files:
            file.unlink(missing_ok=True)
        for folder in {f.parent for f in files}:
            try:
                folder.rmdir()
            except OSError:
                continue
