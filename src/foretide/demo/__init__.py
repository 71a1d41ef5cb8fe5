"""The demo: its times, where it is kept, and the check that every event came out. Its pipeline is
``demo.tweets``.
"""

from __future__ import annotations

import socket
from contextlib import closing

from foretide.demo.folder import MARKER, demo_folder
from foretide.errors import PipelineFailed

WINDOW_S = 5.0
WARM_UP_S = 20
DRAIN_S = 180.0
TARGET_LATENCY_S = 15.0
PORTS_TRIED = 50

__all__ = ["MARKER", "balance", "demo_folder", "free_port"]


def free_port(port: int) -> int:
    """The port itself, or the next one on loopback that nobody uses; 0 stays 0."""
    for tried in range(port, min(port + PORTS_TRIED, 65536)) if port else ():
        with closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", tried))
            except OSError:
                continue
            return tried
    return 0


def balance(came_in: int, total: int, counts: dict[str, int], stopped: bool = False) -> str:
    """The line about events in and out; raises PipelineFailed when nobody stopped the run and
    something is missing or doubled.

    >>> balance(10, 10, {"sport": 7, "spam": 3})
    'events in 10 = events out 10, rows in SQLite: sport 7, spam 3.'
    >>> balance(8, 10, {"sport": 7}, stopped=True)
    'stopped early: 8 of 10 events came in, 7 are rows in SQLite (sport 7); still on the way: 1.'
    """
    out = sum(counts.values())
    topics = ", ".join(f"{name} {n}" for name, n in counts.items()) or "none"
    if came_in == total == out:
        return f"events in {came_in} = events out {out}, rows in SQLite: {topics}."
    if not stopped or out > came_in:
        raise PipelineFailed(
            f"{came_in} of {total} events came in and {out} rows are in SQLite: the pipeline did "
            "not end in time"
        )
    return (
        f"stopped early: {came_in} of {total} events came in, {out} are rows in SQLite ({topics}); "
        f"still on the way: {came_in - out}."
    )
