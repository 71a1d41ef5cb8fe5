"""Following one series through successive calls: which windows are new since the last one.

A forecaster is only ever shown the recent past. Those that learn from their own mistakes must know
which windows came since they last spoke, so that each of their forecasts meets its own truth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from foretide.model import Array

T = TypeVar("T")


class SeriesMemory:
    """The last ``limit`` windows of a series, from what ``fit`` and ``forecast`` were shown:
    further back than ``recent`` reaches.

    >>> memory = SeriesMemory(limit=4)
    >>> memory.learn(np.array([1.0, 2.0, 3.0]))
    >>> memory.see(np.array([2.0, 3.0, 5.0, 8.0])), memory.new
    (array([2., 3., 5., 8.]), 2)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.values: Array = np.empty(0)
        self.new: int | None = (
            None  # windows that the last ``see`` added; None when it started over
        )

    def learn(self, series: Array) -> None:
        self.values = np.array(series[-self.limit :], dtype=float)

    def see(self, recent: Array) -> Array:
        """All that is remembered, up to the end of ``recent``. A past that does not continue what
        was known starts over.
        """
        shown = np.asarray(recent[-self.limit :], dtype=float)
        self.new = arrived(self.values, shown)
        if self.new is None or len(shown) >= len(self.values) + self.new:
            self.values = shown.copy()
        elif self.new:
            self.values = np.concatenate((self.values, shown[-self.new :]))[-self.limit :]
        return self.values


class PendingForecasts(Generic[T]):
    """Forecasts that wait for their truths: ``add`` what was said for each step ahead, ``settle``
    it as windows come.

    >>> ledger = PendingForecasts[float]()
    >>> ledger.settle(np.array([1.0, 2.0]))
    []
    >>> ledger.add([3.0, 4.0])
    >>> ledger.settle(np.array([1.0, 2.0, 3.5]))
    [(0, 3.5, 3.0)]
    """

    def __init__(self) -> None:
        self._recent: Array = np.empty(0)
        self._pending: deque[tuple[int, Sequence[T]]] = deque()
        self._at = 0

    def state(self, plain: Callable[[Sequence[T]], Any]) -> dict[str, Any]:
        """What waits, to be kept; ``plain`` turns what was said into arrays and plain values."""
        return {
            "recent": self._recent,
            "at": self._at,
            "pending": [[origin, plain(said)] for origin, said in self._pending],
        }

    def restore(self, state: Mapping[str, Any], whole: Callable[[Any], Sequence[T]]) -> None:
        """The opposite of ``state``."""
        self._recent = np.array(state["recent"], dtype=float)
        self._at = int(state["at"])
        self._pending = deque((int(origin), whole(said)) for origin, said in state["pending"])

    @property
    def at(self) -> int:
        """Windows seen so far."""
        return self._at

    def add(self, said: Sequence[T]) -> None:
        """What was said of the windows after those last settled, one item per step ahead."""
        self._pending.append((self._at, said))

    def settle(self, recent: Array) -> list[tuple[int, float, T]]:
        """Step ahead (from 0), truth and what was said, for every window that is new; windows that
        were not measured tell nothing.

        A past that does not continue the one before drops all that waits.
        """
        values = np.array(recent, dtype=float)
        new = arrived(self._recent, values)
        self._recent = values
        if new is None:
            self._pending.clear()
            return []
        first, self._at = self._at, self._at + new
        settled = []
        for origin, said in self._pending:
            for step in range(max(0, first - origin), min(len(said), self._at - origin)):
                truth = values[len(values) - (self._at - origin - step)]
                if np.isfinite(truth):
                    settled.append((step, float(truth), said[step]))
        while self._pending and self._at - self._pending[0][0] >= len(self._pending[0][1]):
            self._pending.popleft()
        return settled


def arrived(before: Array, now: Array) -> int | None:
    """How many windows at the end of ``now`` came after the end of ``before``; None when ``now``
    does not continue it.

    The two must agree, holes included, wherever they overlap, and the overlap must be all of
    ``before`` or half of ``now``, so that a few equal values are no proof. The smallest number of
    new windows that fits is taken: on a flat or exactly periodic stretch several fit, and all of
    them tell the same story. Two calls with the very same windows count 0, unless they are flat.

    >>> arrived(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0]))
    1
    >>> arrived(np.array([1.0, 2.0]), np.array([1.0, 2.0, 7.0, np.nan]))
    2
    >>> arrived(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    0
    >>> arrived(np.array([1.0, 2.0]), np.array([8.0, 9.0])) is None
    True
    """
    if not len(before) or not len(now):
        return None
    least = min(len(before), max(1, len(now) // 2))
    candidates: tuple[int, ...] = (*range(1, len(now) - least + 1), 0)
    for new in candidates:
        overlap = min(len(before), len(now) - new)
        then, again = (
            before[len(before) - overlap :],
            now[len(now) - new - overlap : len(now) - new],
        )
        if _same(then[-1], again[-1]) and np.array_equal(then, again, equal_nan=True):
            return new
    return None


def _same(a: float, b: float) -> bool:
    return bool(a == b or (a != a and b != b))
