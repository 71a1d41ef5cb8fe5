"""Work that must be done before a promise breaks, and how a short burst may be stretched. Times are
in windows, work in events.
"""

from __future__ import annotations

import numpy as np

from foretide.model import Array

SPANS = (1, 2, 3, 5, 8, 13)
UNEVEN = 0.85
"""The part of a delay that is planned with: a window's work may come at its beginning."""


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

    >>> stretched(np.array([1.0, 1.0, 10.0, 1.0]), delay=1.0)
    array([0.5       , 0.66666667, 5.        , 3.66666667])
    """
    cumulated = np.concatenate([[0.0], np.cumsum(rates)])
    end = np.arange(1, len(rates) + 1)
    found = np.zeros(len(rates))
    for span in SPANS:
        begin = np.maximum(end - span, 0)
        found = np.maximum(found, (cumulated[end] - cumulated[begin]) / (span + delay))
    return found


def stretch(rates: Array, delay: float, quantile: float) -> float:
    """How much of a high window's rate a constant capacity needs, since its events may wait: the
    quantile of ``stretched`` over the quantile of the rates, between 0 and 1.
    """
    known = rates[np.isfinite(rates)]
    if len(known) < 4:
        return 1.0
    high = float(np.quantile(known, quantile))
    if high <= 0:
        return 1.0
    return min(1.0, float(np.quantile(stretched(known, delay), quantile)) / high)
