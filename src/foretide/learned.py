"""Learned: what planners and forecasters learned, kept in files next to the journal, so that a
restarted run continues where the last one ended.

Owns the files alone; what a state means is its owner's business (``foretide.parts.Learner``). A
file is replaced whole, never edited, so a killed run leaves the last whole state.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from foretide.errors import JournalError
from foretide.files import replace_file
from foretide.forecast.state_file import decoded, encoded
from foretide.model import Decision
from foretide.parts import Learner

_decoder = msgspec.json.Decoder(dict[str, Any])


def learned_path(journal: Path | str, planner: str) -> Path:
    """Where the state of a planner lies; each planner has its own file, so that changing the system
    loses nothing.

    >>> learned_path("runs/x/journal.jsonl", "sarsa").name
    'learned-sarsa.json'
    """
    return Path(journal).with_name(f"learned-{planner}.json")


def forecasts_path(journal: Path | str, forecaster: str) -> Path:
    """Where what forecasters of that name learned is kept.

    >>> forecasts_path("runs/x/journal.jsonl", "bigru").name
    'learned-forecasts-bigru.npz'
    """
    return Path(journal).with_name(f"learned-forecasts-{forecaster}.npz")


class Learned:
    """Restores a state on entering, where there is one; writes it after every ``every`` decisions
    and on leaving. The file holds JSON, or arrays too where its name ends in ``.npz``.

    A planner that does not learn is left alone and no file is written.
    """

    def __init__(self, path: Path | str, owner: object, every: int = 30) -> None:
        self.path = Path(path)
        self.owner = owner if isinstance(owner, Learner) else None
        self.every = every
        self._decisions = 0

    def __enter__(self) -> Learned:
        if self.owner is not None and self.path.exists():
            try:
                content = self.path.read_bytes()
                arrays = self.path.suffix == ".npz"
                self.owner.restore(decoded(content) if arrays else _decoder.decode(content))
            except Exception as error:  # what the file holds reaches the owner's own code
                raise JournalError(
                    f"cannot read what was learned from {self.path}: {type(error).__name__}: "
                    f"{error}; remove the file to learn anew"
                ) from error
        return self

    def note(self, decision: Decision) -> None:
        """Call after every decision."""
        self._decisions += 1
        if self._decisions % self.every == 0:
            self.save()

    def save(self) -> None:
        if self.owner is None:
            return
        encode = encoded if self.path.suffix == ".npz" else msgspec.json.encode
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, encode(self.owner.state()))
        except OSError as error:
            raise JournalError(
                f"cannot write {self.path}: {error.strerror}; choose a folder you can write to"
            ) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.save()
