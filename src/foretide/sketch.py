"""Latency sketches: the distribution of one window, small enough for a journal line, mergeable into
the percentiles of a whole run.

DDSketch (Masson, Rim and Lee, VLDB 2019) of the library ``ddsketch``: every percentile is within
1 % of the true value, however many sketches were merged. Owns the step between the library's sketch
and the tuple that a ``Latency`` record holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from foretide.model import Array, Sketch

ACCURACY = 0.01
_FINE = 1024  # buckets per octave in which equal latencies are added at once


def sketch(ages_s: Any, weights: Array | None = None) -> Sketch:
    """The distribution of these ages in milliseconds; ``weights`` are the events each stands for.

    >>> sketch(np.array([0.1, 0.1, 0.4]))[1][0]
    2.0
    """
    made = _Opened()
    ms = np.maximum(np.asarray(ages_s, dtype=float) * 1e3, 1e-3)
    fine, at = np.unique(np.round(np.log2(ms) * _FINE), return_inverse=True)
    counts = np.bincount(at, weights)
    for value, count in zip(np.exp2(fine / _FINE).tolist(), counts.tolist(), strict=True):
        if count > 0:
            made.sketch.add(value, count)
    return made.packed()


def merged(parts: Iterable[Sketch]) -> Sketch:
    """Several sketches as one."""
    whole = _Opened()
    for part in parts:
        whole.sketch.merge(_Opened(part).sketch)
    return whole.packed()


def quantiles(of: Sketch, shares: Sequence[float]) -> list[float]:
    """Milliseconds that these shares of the events do not exceed; the sketch holds at least one.

    >>> quantiles(sketch(np.full(9, 1.0)), (0.5,))[0] / 1000 - 1 < 0.01
    True
    """
    opened = _Opened(of).sketch
    return [float(opened.get_quantile_value(s) or 0.0) for s in shares]


class _Opened:
    """The library's sketch with the parts that are written down: its keys and their counts."""

    def __init__(self, packed: Sketch = (0, ())) -> None:
        from ddsketch.ddsketch import BaseDDSketch
        from ddsketch.mapping import LogarithmicMapping
        from ddsketch.store import DenseStore

        self.mapping, self.store = LogarithmicMapping(ACCURACY), DenseStore()
        self.sketch = BaseDDSketch(self.mapping, self.store, DenseStore(), 0.0)
        for key, count in enumerate(packed[1], packed[0]):
            if count > 0:
                self.sketch.add(self.mapping.value(key), count)

    def packed(self) -> Sketch:
        store = self.store
        if not store.count:
            return 0, ()
        first = int(store.min_key)
        counts = store.bins[first - store.offset : store.max_key - store.offset + 1]
        return first, tuple(round(float(c), 3) for c in counts)
