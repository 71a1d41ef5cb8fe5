"""The journal: append-only JSON lines, one per Decision, readable after any crash.

A run starts with a line ``{"run": ...}`` that says what ran; every other line is ``{"decision":
...}``. A line is written whole or, after a crash, torn: readers skip a torn line with a warning and
lose nothing before or after it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from foretide.errors import JournalError
from foretide.model import Decision, Mode, Prices
from foretide.topology import Topology


@dataclass(frozen=True, slots=True)
class Run:
    """What ran: the journal's first line. ``share`` of the events is promised to be done within
    ``target_latency_s``.
    """

    name: str
    system: str
    topology: Topology
    window_s: float
    started_at: float
    mode: Mode = "advise"
    target_latency_s: float | None = None
    prices: Prices = field(default_factory=Prices)
    settings: Mapping[str, Any] = field(default_factory=dict)
    share: float | None = None


class _Line(msgspec.Struct, omit_defaults=True):
    run: Run | None = None
    decision: Decision | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Line)


def encode(decision: Decision) -> bytes:
    """One journal line without its newline."""
    return _encoder.encode(_Line(decision=decision))


def decode(line: bytes) -> Run | Decision | None:
    """What one journal line holds; None when it is torn or holds nothing.

    >>> decode(encode(Decision(at=1.0, outcome="waiting", mode="advise"))).outcome
    'waiting'
    >>> decode(b'{"decision":{"at":1.') is None
    True
    """
    try:
        record = _decoder.decode(line)
    except (msgspec.DecodeError, ValueError):
        return None
    return record.run or record.decision


class Journal:
    """Appends to a file. Each line reaches the operating system before ``append`` returns, so a
    killed process loses none.
    """

    def __init__(self, path: Path | str, run: Run) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            size = os.fstat(self._fd).st_size
            self._torn = size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"
        except OSError as error:
            raise JournalError(
                f"cannot open the journal {self.path}: {error.strerror}; choose a folder you can "
                "write to"
            ) from error
        self._write(_encoder.encode(_Line(run=run)))

    def append(self, decision: Decision) -> None:
        self._write(encode(decision))

    def _write(self, line: bytes) -> None:
        """One line. What an earlier write left unfinished is closed first, so that it costs no line
        but its own.
        """
        data = (b"\n" if self._torn else b"") + line + b"\n"
        try:
            while data:
                data = data[os.write(self._fd, data) :]
                self._torn = bool(data)
        except OSError as error:
            raise JournalError(
                f"cannot write the journal {self.path}: {error.strerror}; free some space or move "
                "it"
            ) from error

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_lines(path: Path | str, start: int = 0) -> Iterator[tuple[int, Run | Decision]]:
    """Records from byte ``start`` on, each with the offset after its line. An unfinished last line
    is left for the next read.
    """
    torn: list[int] = []
    try:
        with open(path, "rb") as f:
            f.seek(start)
            for line in f:
                start += len(line)
                if not line.endswith(b"\n"):
                    warnings.warn(
                        f"{path}: the last line is unfinished and was skipped (a crash, or still "
                        "being written)",
                        stacklevel=2,
                    )
                    break
                if not line.strip():
                    continue
                if (record := decode(line)) is None:
                    torn.append(start)
                else:
                    yield start, record
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error.strerror}") from error
    if torn:
        lines = "1 torn line was" if len(torn) == 1 else f"{len(torn)} torn lines were"
        warnings.warn(f"{path}: {lines} skipped; the first ends at byte {torn[0]}", stacklevel=2)


def read(path: Path | str) -> tuple[Run, list[Decision]]:
    """The last run in a journal and all its decisions; earlier runs in the same file are earlier
    lives of it and count too.
    """
    run: Run | None = None
    decisions: list[Decision] = []
    for _, record in read_lines(path):
        if isinstance(record, Run):
            run = record
        else:
            decisions.append(record)
    if run is None:
        raise JournalError(
            f"{path} holds no run: it is not a Foretide journal, or the crash came before its "
            "first line"
        )
    return run, decisions
