"""For the processes in which Spark plans a Python source."""

from __future__ import annotations

import signal


def end_quietly() -> None:
    """Spark ends such a process by closing its connection, and the process would answer with an
    error that nobody reads any more: a long trace on the user's screen. A broken pipe just ends it,
    as it ends other programs.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
