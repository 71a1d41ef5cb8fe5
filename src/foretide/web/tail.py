"""Tail: follows one journal file, a slice at a time, and keeps the run's state and the index of its
decisions.

Owns the file position. A line still being written waits for the next slice; a torn line is counted
and skipped; a file that was replaced or cut is read again from its start.
"""

from __future__ import annotations

import os
from pathlib import Path

from foretide.journal import Run
from foretide.web.decisions import Index
from foretide.web.lines import DecisionLine, decode
from foretide.web.state import RunState

SLICE_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 26


class Tail:
    """One journal, followed. ``advance`` reads the next slice."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state: RunState | None = None
        self.index = Index()
        self.skipped = 0
        self.grown_at = 0.0
        self._offset = 0
        self._size = 0
        self._file: tuple[int, int] | None = None

    @property
    def behind(self) -> bool:
        """Whole slices may be left to read."""
        return self._size - self._offset >= SLICE_BYTES

    @property
    def read_share(self) -> float:
        return self._offset / self._size if self.behind else 1.0

    def advance(self) -> int:
        """Read at most one slice and return the number of new decisions; 0 without a file."""
        try:
            with open(self.path, "rb") as f:
                self._look(os.fstat(f.fileno()))
                if self._size == self._offset:
                    return 0
                f.seek(self._offset)
                data = f.read(SLICE_BYTES)
                while (
                    b"\n" not in data
                    and len(data) < LONGEST_LINE_BYTES
                    and (more := f.read(SLICE_BYTES))
                ):
                    data += more
        except OSError:
            return 0
        before = self.index.total
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines(keepends=True):
            if not line.isspace():
                self._take(line)
            self._offset += len(line)
        return self.index.total - before

    def _look(self, stat: os.stat_result) -> None:
        file = (stat.st_dev, stat.st_ino)
        if (self._file is not None and file != self._file) or stat.st_size < self._offset:
            self.state, self.index, self._offset, self.skipped = None, Index(), 0, 0
        self._file, self._size, self.grown_at = file, stat.st_size, stat.st_mtime

    def _take(self, line: bytes) -> None:
        record = decode(line)
        if isinstance(record, Run):
            if self.state is None or self.state.run.topology != record.topology:
                self.state = RunState(record)
            else:
                self.state.run = record
        elif record is not None and self.state is not None and _fits(record, self.state):
            self.state.add(record)
            self.index.append(self._offset, record.notable)
        else:
            self.skipped += 1


def _fits(decision: DecisionLine, state: RunState) -> bool:
    return decision.snapshot is None or decision.snapshot.samples.keys() == set(state.names)
