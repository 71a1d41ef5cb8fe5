"""Latencies of a whole run: every one of them as 32-bit numbers up to a limit, beyond it a
histogram of 0.1 % wide bins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretide.model import Array

_PARTS_BITS = 10  # an octave in 1024 parts
_LOW = 97 << _PARTS_BITS  # 2^-30 s
_BINS = 60 << _PARTS_BITS


class Latencies:
    """Grows as events leave; ``limit`` latencies are kept one by one.

    >>> l = Latencies(limit=10)
    >>> l.add(np.array([0.5, 0.25], np.float32))
    >>> l.count, l.values_ms().tolist(), l.weights()
    (2.0, [500.0, 250.0], None)
    """

    def __init__(self, limit: int = 20_000_000) -> None:
        self.limit = limit
        self.count = 0.0
        self._chunks: list[Any] = []
        self._histogram: Array | None = None

    def add(self, seconds: Any) -> None:
        """One latency per event."""
        self.count += seconds.size
        if self._histogram is None and self.count <= self.limit:
            self._chunks.append(seconds)
        else:
            self._count_in(seconds, None)

    def add_weighted(self, seconds: Array, events: Array) -> None:
        """``events[i]`` events took ``seconds[i]``."""
        self.count += float(np.add.reduce(events))
        self._count_in(seconds, events)

    def clear(self) -> None:
        """Begin anew."""
        self.count = 0.0
        self._chunks.clear()
        self._histogram = None

    def _count_in(self, seconds: Any, weights: Array | None) -> None:
        if self._histogram is None:
            self._histogram = np.zeros(_BINS)
            for chunk in self._chunks:
                self._histogram += np.bincount(_bins(chunk), minlength=_BINS)
            self._chunks.clear()
        np.add.at(self._histogram, _bins(seconds), 1.0 if weights is None else weights)

    def values_ms(self) -> Array:
        """One value per event, or one per bin that is not empty."""
        if self._histogram is None:
            return np.concatenate([np.zeros(0, np.float32), *self._chunks]).astype(float) * 1e3
        used = np.flatnonzero(self._histogram)
        bits = ((used + _LOW) << (23 - _PARTS_BITS)) + (1 << (22 - _PARTS_BITS))
        return np.asarray(bits.astype(np.int32).view(np.float32).astype(float) * 1e3)

    def weights(self) -> Array | None:
        """Events per value; None when there is one per event."""
        return None if self._histogram is None else self._histogram[np.flatnonzero(self._histogram)]


def _bins(seconds: Any) -> Any:
    bits = np.maximum(np.asarray(seconds, np.float32), np.float32(2.0**-30)).view(np.int32)
    return np.minimum((bits >> (23 - _PARTS_BITS)) - _LOW, _BINS - 1)
