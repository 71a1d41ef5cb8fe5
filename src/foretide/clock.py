"""Time for the loop: instants that run evenly, and the end of every window.

This is the only place that asks the operating system for the time on the loop's behalf. Instants
are UTC seconds: the wall clock as it stood when the clock was made, carried on by a monotonic
clock. So a window's length is right whatever happens to the wall clock. When the wall clock is set,
or the machine was suspended, the instants follow it once, and that window is a gap.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

POLL_S = 0.05
"""An operator behind an edge looks this often for events, or at every trigger where that comes
sooner ...
"""
PAUSE = 0.75
"""... and starts its next batch this many triggers after the last one at the earliest: on Spark,
and in the simulator's micro-batches.
"""
LEAST_SPAN_S, LEAST_EVENTS = 2.0, 10
"""A batch behind an edge may always hold this many seconds of work, and this many events: a smaller
one costs more to run than it does.
"""
AMORTIZED = 4.0
"""Work of a batch, in times of what it costs beside its work: its replicas then work for at least
four fifths of the time, or a queue would not drain.
"""
MOST_SPAN_S = 10.0
"""A batch holds no more work than this because of what it costs."""
JUMP_S = 1.0
"""The wall clock may differ by this much from the instants before they follow it."""
LONG = 3.0
"""A window that lasted this many times what was asked is a gap."""


def span_s(trigger_s: float, overhead_s: float = 0.0) -> float:
    """Seconds of every replica's work that a batch behind an edge holds at most: two triggers, so
    that a change of replicas takes effect soon, or as much as is worth what a batch costs beside
    its work.

    >>> span_s(0.5), span_s(2.0), span_s(2.0, overhead_s=1.5)
    (2.0, 4.0, 6.0)
    """
    return max(2 * trigger_s, LEAST_SPAN_S, min(AMORTIZED * overhead_s, MOST_SPAN_S))


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """UTC seconds that run evenly between two calls of ``follow``."""
        ...

    def follow(self) -> float:
        """Go on from the wall clock where it was set or slept; seconds it had moved, else 0."""
        ...

    def wait_until(self, at: float, stop: threading.Event) -> None:
        """Return at ``at``, or at once when ``stop`` is set."""
        ...


class WallClock:
    """UTC seconds; waiting ends at once when ``stop`` is set."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._offset = wall() - monotonic()

    def now(self) -> float:
        return self._offset + self._monotonic()

    def follow(self) -> float:
        moved = self._wall() - self.now()
        if abs(moved) <= JUMP_S:
            return 0.0
        self._offset += moved
        return moved

    def wait_until(self, at: float, stop: threading.Event) -> None:
        stop.wait(max(0.0, at - self.now()))


@dataclass(frozen=True, slots=True)
class WindowEnd:
    """A window ends ``at``. ``gap`` says why its counts make no rate; None when they do."""

    at: float
    gap: str | None = None


def window_ends(clock: Clock, window_s: float, stop: threading.Event) -> Iterator[WindowEnd]:
    """The end of every window, as it comes, until ``stop`` is set.

    A window starts where the last one ended; one that a slow step delayed ends when the step is
    done. A window in which the wall clock was set, or the process stood still, is a gap.
    """
    at = clock.now()
    while not stop.is_set():
        due = max(at + window_s, clock.now())
        clock.wait_until(due, stop)
        if stop.is_set():
            return
        gap = None
        if moved := clock.follow():
            gap = (
                f"the clock moved by {moved:+,.0f} s within this window (it was set, or the "
                "machine was suspended): a gap, not a rate"
            )
        elif (lasted := clock.now() - at) > LONG * max(window_s, due - at):
            gap = (
                f"this window lasted {lasted:,.0f} s instead of {window_s:g} s (the process stood "
                "still): a gap, not a rate"
            )
        late = gap is not None or clock.now() - due > 0.1 * window_s
        at = clock.now() if late else due
        yield WindowEnd(at, gap)
