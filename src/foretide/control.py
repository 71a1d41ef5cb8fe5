"""The mode switch: a small file next to the journal that holds whether the loop may act.

The loop reads it each step; a dashboard, in this process or another, writes it. The file exists
while a loop listens; without it a run is over or has a fixed mode. It is
replaced whole, never edited, so a reader never sees half of it.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import msgspec

from foretide.errors import JournalError, NobodyListens
from foretide.files import replace_file
from foretide.model import Mode


class _Control(msgspec.Struct):
    mode: Mode


_decoder = msgspec.json.Decoder(_Control)


def control_path(journal: Path | str) -> Path:
    """Where the switch of a journal lies.

    >>> control_path("runs/x/journal.jsonl").name
    'control.json'
    """
    return Path(journal).with_name("control.json")


def asked_mode(path: Path | str) -> Mode | None:
    """The mode last asked for; None when no loop listens or the file cannot be understood."""
    try:
        return _decoder.decode(Path(path).read_bytes()).mode
    except (OSError, msgspec.DecodeError):
        return None


def ask_mode(path: Path | str, mode: Mode) -> None:
    """Ask the loop that listens at ``path`` to go on in this mode from its next step."""
    if not Path(path).exists():
        raise NobodyListens(
            "no loop listens: this run is over, or it was started with a fixed mode"
        )
    _write(Path(path), mode)


def _write(path: Path, mode: Mode) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(_Control(mode)))
    except OSError as error:
        raise JournalError(
            f"cannot write {path}: {error.strerror}; choose a folder you can write to"
        ) from error


class ModeSwitch:
    """The loop's end of the switch: call it for the mode that holds now.

    Opening it writes ``start``, so that what an earlier run left behind never decides; closing it
    removes the file. A file that is missing or cannot be understood changes nothing: the last mode
    known holds.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with ModeSwitch(f"{folder}/control.json", "advise") as mode:
    ...         before = mode()
    ...         ask_mode(mode.path, "act")
    ...         before, mode()
    ('advise', 'act')
    """

    def __init__(self, path: Path | str, start: Mode = "advise") -> None:
        self.path = Path(path)
        self._mode: Mode = start
        _write(self.path, start)

    def __call__(self) -> Mode:
        self._mode = asked_mode(self.path) or self._mode
        return self._mode

    def close(self) -> None:
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> ModeSwitch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
