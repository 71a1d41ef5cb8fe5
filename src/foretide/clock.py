"""The wall clock: the only place that asks the operating system for the time on the loop's behalf."""

from __future__ import annotations

import threading
import time


class WallClock:
    """UTC seconds; waiting ends at once when ``stop`` is set."""

    def now(self) -> float:
        return time.time()

    def wait_until(self, at: float, stop: threading.Event) -> None:
        stop.wait(max(0.0, at - time.time()))
