"""The wall clock, the only place that asks the operating system for the time on the loop's behalf;
and the pace of operators.
"""

from __future__ import annotations

import threading
import time

POLL_S = 0.5
"""An operator behind an edge looks this often for events, or at every trigger where that comes
sooner ...
"""
PAUSE = 0.75
"""... and starts its next batch this many triggers after the last one at the earliest: on Spark, and in the simulator's micro-batches.
"""


class WallClock:
    """UTC seconds; waiting ends at once when ``stop`` is set."""

    def now(self) -> float:
        return time.time()

    def wait_until(self, at: float, stop: threading.Event) -> None:
        stop.wait(max(0.0, at - time.time()))
