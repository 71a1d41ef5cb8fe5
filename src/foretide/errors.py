"""The exceptions Foretide raises on purpose. Each message says what was wrong, where, and what to
do.

ForetideError
├── NotReady              too little is known yet; wait and ask again (never an action)
├── InvalidRecord         a record was built from impossible values
│   └── InvalidTopology   a graph that cannot run
├── InvalidConfig         a setting, a file or a name the user gave is wrong
│   └── MissingExtra      a part needs an optional dependency that is not installed
├── Infeasible            no plan can reach the target; the message says what would be feasible
├── JournalError          a journal cannot be read or written
├── NobodyListens         a mode was asked for, but no loop reads the switch
├── ActuationError        the environment refused or failed to carry out a plan
└── PipelineFailed        a running pipeline stopped, or cannot start from what it finds on disk
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ForetideError(Exception):
    """Root of the tree: catch this to catch everything Foretide raises on purpose."""


class NotReady(ForetideError):
    """Too little is known yet. The loop takes no action and asks again in the next window."""


class InvalidRecord(ForetideError, ValueError):
    """A record was built from impossible values."""


class InvalidTopology(InvalidRecord):
    """The operators do not form a graph that can run."""


class InvalidConfig(ForetideError, ValueError):
    """A setting, a file or a name the user gave is wrong."""


class MissingExtra(InvalidConfig, ImportError):
    """A part needs an optional dependency that is not installed."""


class Infeasible(ForetideError):
    """No plan can reach the target."""


class JournalError(ForetideError):
    """A journal cannot be read or written."""


class NobodyListens(ForetideError):
    """No loop reads this mode switch: the run is over, or it was started with a fixed mode."""


class ActuationError(ForetideError):
    """The environment refused or failed to carry out a plan. Replicas stay as they are."""


class PipelineFailed(ForetideError):
    """A running pipeline stopped, or cannot start from what it finds on disk. Nothing was
    deleted.
    """


def unknown(kind: str, name: str, valid: Iterable[str]) -> InvalidConfig:
    """The error for a name that is not registered, with the nearest valid one.

    >>> str(unknown("system", "sera", ["srea", "static"]))
    "unknown system 'sera'; did you mean 'srea'? Valid: srea, static"
    """
    names = sorted(valid)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else "."
    return InvalidConfig(f"unknown {kind} '{name}'{hint} Valid: {', '.join(names)}")


def missing_extra(extra: str, need: str) -> MissingExtra:
    """The error for an optional dependency that is not installed.

    >>> str(missing_extra("spark", "attach needs pyspark"))
    "attach needs pyspark, which is not installed: pip install 'foretide[spark]'"
    """
    return MissingExtra(f"{need}, which is not installed: pip install 'foretide[{extra}]'")
