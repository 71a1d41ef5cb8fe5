"""Bounded series: many channels over time in a fixed amount of memory, however long a run lasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from foretide.model import Array

Rule = Literal["mean", "max", "last"]


class RecentSeries:
    """The last ``limit`` points of every channel, one column per append.

    >>> r = RecentSeries(1, limit=2)
    >>> for at in (1.0, 2.0, 3.0):
    ...     r.append(at, np.array([at * 10]))
    >>> r.columns()
    array([[ 2.,  3.],
           [20., 30.]])
    """

    def __init__(self, channels: int, limit: int) -> None:
        self.limit = limit
        self._data = np.full((channels + 1, 2 * limit), np.nan)
        self._used = 0

    def append(self, at: float, values: Array) -> None:
        if self._used == 2 * self.limit:  # sliding in bulk keeps an append O(channels)
            self._data[:, : self.limit] = self._data[:, self.limit :]
            self._used = self.limit
        self._data[0, self._used] = at
        self._data[1:, self._used] = values
        self._used += 1

    def columns(self) -> Array:
        """Row 0 holds the instants, row 1 + c channel c. A view: copy it to keep it."""
        return self._data[:, max(0, self._used - self.limit) : self._used]


class WholeSeries:
    """All of a run in at most ``limit`` points: when they are full, neighbours merge and each point
    covers twice as many windows.

    What a merged point shows is each channel's rule: the mean, the largest (peaks must not vanish)
    or the last; what was not measured (NaN) does not count. The instant of a point is that of its
    last window.

    >>> w = WholeSeries(("mean", "max"), limit=2)
    >>> for at in (1.0, 2.0, 3.0):
    ...     w.append(at, np.array([at, at]))
    >>> w.columns()
    array([[2. , 3. ],
           [1.5, 3. ],
           [2. , 3. ]])
    """

    def __init__(self, rules: Sequence[Rule], limit: int) -> None:
        if limit < 2 or limit % 2:
            raise ValueError(
                f"limit is {limit}: neighbours can only merge when it is even and at least 2"
            )
        self.limit = limit
        self.stride = 1
        self._mean = np.array([r == "mean" for r in rules], dtype=bool)
        self._max = np.array([r == "max" for r in rules], dtype=bool)
        self._data = np.full((len(rules) + 1, limit), np.nan)
        self._used = 0
        self._open = _Bucket(len(rules))

    def append(self, at: float, values: Array) -> None:
        if self._used == self.limit:
            self._merge_neighbours()
        self._open.add(at, values)
        if self._open.held == self.stride:
            self._data[:, self._used] = self._open.column(self._mean, self._max)
            self._used += 1
            self._open.clear()

    def _merge_neighbours(self) -> None:
        merged = np.empty((self._data.shape[0], self.limit // 2))
        pair = _Bucket(self._data.shape[0] - 1)
        for i in range(self.limit // 2):
            pair.clear()
            for column in self._data.T[2 * i : 2 * i + 2]:
                pair.add(float(column[0]), column[1:])
            merged[:, i] = pair.column(self._mean, self._max)
        self._used = self.limit // 2
        self._data[:, : self._used] = merged
        self.stride *= 2

    def columns(self) -> Array:
        """Row 0 holds the instants, row 1 + c channel c; the last point may still be filling."""
        closed = self._data[:, : self._used]
        if not self._open.held:
            return closed
        return np.column_stack((closed, self._open.column(self._mean, self._max)))


class _Bucket:
    """The windows that one point is made of."""

    def __init__(self, channels: int) -> None:
        self._sum, self._seen = np.zeros(channels), np.zeros(channels)
        self._top, self._last = np.full(channels, np.nan), np.full(channels, np.nan)
        self.held = 0
        self._at = np.nan

    def clear(self) -> None:
        self._sum.fill(0.0)
        self._seen.fill(0.0)
        self._top.fill(np.nan)
        self._last.fill(np.nan)
        self.held = 0

    def add(self, at: float, values: Array) -> None:
        known = ~np.isnan(values)
        np.add(self._sum, values, out=self._sum, where=known)
        self._seen += known
        np.fmax(self._top, values, out=self._top)
        np.copyto(self._last, values, where=known)
        self.held += 1
        self._at = at

    def column(self, mean: Array, top: Array) -> Array:
        average = np.divide(
            self._sum, self._seen, out=np.full_like(self._sum, np.nan), where=self._seen > 0
        )
        return np.concatenate(
            ([self._at], np.where(mean, average, np.where(top, self._top, self._last)))
        )
