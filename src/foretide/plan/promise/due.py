"""Work that must be done before a promise breaks, and how a short burst may be stretched. Times are
in windows, work in events.
"""

from __future__ import annotations

import numpy as np

from foretide.model import Array

SPANS = (1, 2, 3, 5, 8, 13)
FEW = 8.0
"""Windows after which twice what was enough so far is still allowed for: the next burst may be
higher.
"""
UNEVEN = (0.05, 0.15)
"""The part of a delay that is left unused, at the least and at a level of caution of 1: a window's
work may come at its beginning.
"""
OWED = 0.3
"""How much less of a delay is used for each level above 1, where events are late that would not be
if a window's work came evenly.
"""
LEFT = 0.1
"""The least part of a delay that is used."""


def evened(delay: float, level: float) -> float:
    """The delay to plan with at a level of caution (``promise.level``).

    >>> [round(evened(2.0, level), 2) for level in (0.0, 1.0, 2.0)]
    [1.9, 1.7, 1.19]
    """
    least, most = UNEVEN
    part = 1.0 - least - (most - least) * min(1.0, max(0.0, level))
    return delay * part * owed(level)


def owed(level: float) -> float:
    """The part of a delay that is left to use while late events are owed.

    >>> owed(0.5), owed(1.5)
    (1.0, 0.85)
    """
    return max(LEFT, 1.0 - OWED * max(0.0, level - 1.0))


def due_work(waiting: Array, coming: Array, last: Array, delay: float) -> Array:
    """Events per operator that must be done in the next window: what is asked for works at once,
    and until the next plan can change it a window passes.

    ``waiting`` events queue for each operator now, ``coming`` arrive in the next window, ``last``
    came in the last one. Where the delay allows more than a window, the youngest that wait are not
    due yet.

    >>> due_work(np.array([10.0]), np.array([4.0]), np.array([4.0]), delay=0.75)
    array([11.])
    >>> due_work(np.array([10.0]), np.array([4.0]), np.array([4.0]), delay=2.0)
    array([6.])
    """
    return np.maximum(0.0, waiting + (1.0 - delay) * (last if delay >= 1.0 else coming))


def stretched(rates: Array, delay: float) -> Array:
    """The constant capacity that would have kept each window's events within ``delay`` windows,
    from the bursts that end there: ``max over s of (sum of the last s windows) / (s + delay)``.
    Before the first window the load counts as average.

    >>> stretched(np.array([2.0, 2.0, 10.0, 2.0]), delay=1.0).round(2)
    array([3.57, 3.43, 5.  , 4.  ])
    """
    known = np.concatenate([np.full(SPANS[-1], rates.mean()), rates])
    cumulated = np.concatenate([[0.0], np.cumsum(known)])
    end = np.arange(SPANS[-1] + 1, len(cumulated))
    found = np.zeros(len(rates))
    for span in SPANS:
        found = np.maximum(found, (cumulated[end] - cumulated[end - span]) / (span + delay))
    return found


def carried(rates: Array, delay: float) -> Array:
    """Capacity for the coming windows (rows; columns are operators) with the lowest peak that keeps
    what comes within ``delay`` windows: ``max over stretches of (sum of the windows) / (windows +
    delay)``. What comes faster waits, and no window gets more than there is to do.

    >>> carried(np.array([[1.0], [10.0], [1.0], [1.0]]), delay=1.0)[:, 0]
    array([1., 5., 5., 2.])
    """
    cumulated = np.vstack([np.zeros_like(rates[:1]), np.cumsum(rates, axis=0)])
    peak = np.zeros_like(rates[0])
    for width in range(1, len(rates) + 1):
        most = (cumulated[width:] - cumulated[:-width]).max(axis=0)
        peak = np.maximum(peak, most / (width + delay))
    waiting, found = np.zeros_like(peak), np.empty_like(rates)
    for row, came in enumerate(rates):
        waiting = waiting + came
        found[row] = np.minimum(peak, waiting)
        waiting = waiting - found[row]
    return found


def stretch(rates: Array, delay: float, quantile: float) -> tuple[float, float]:
    """How much of a high window's rate a constant capacity needs, since its events may wait: the
    quantile of ``stretched`` over the quantile of the rates, between 0 and 1. And that capacity,
    with a margin of ``FEW / windows`` for how little was seen; 1 and infinite before four windows.
    """
    known = rates[np.isfinite(rates)]
    high = float(np.quantile(known, quantile)) if len(known) >= 4 else 0.0
    if high <= 0:
        return 1.0, np.inf
    enough = float(np.quantile(stretched(known, delay), quantile))
    return min(1.0, enough / high), enough * (1.0 + FEW / len(known))
