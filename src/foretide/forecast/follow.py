"""Following one series through successive calls: which windows are new since the last one.

A forecaster is only ever shown the recent past. Those that learn from their own mistakes must know which windows came since they
last spoke, so that each of their forecasts meets its own truth.
"""

from __future__ import annotations

import numpy as np

from foretide.model import Array


def arrived(before: Array, now: Array) -> int | None:
    """How many windows at the end of ``now`` came after the end of ``before``; None when ``now`` does not continue it.

    The two must agree, holes included, wherever they overlap, and the overlap must be all of ``before`` or half of ``now``, so that
    a few equal values are no proof. The smallest number of new windows that fits is taken: on a flat or exactly periodic stretch
    several fit, and all of them tell the same story. Two calls with the very same windows count 0, unless they are flat.

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
        then, again = before[len(before) - overlap :], now[len(now) - new - overlap : len(now) - new]
        if _same(then[-1], again[-1]) and np.array_equal(then, again, equal_nan=True):
            return new
    return None


def _same(a: float, b: float) -> bool:
    return bool(a == b or (a != a and b != b))
