"""Cost so far, window by window: the schedule cost of ``plan.optimum`` as a running sum, and static
peak to hold against it.
"""

from __future__ import annotations

import numpy as np

from foretide.model import Array, Prices


class Meter:
    """What was paid for the replicas that ran, and what constant replicas for the highest need so
    far would have cost.

    ``paid`` is W of ``plan.optimum.schedule_cost`` summed over operators, starting from the
    replicas first seen. Windows that were not measured are not counted on either side.

    >>> meter = Meter(Prices())
    >>> for n, need in ((1, 1), (2, 2), (2, 1)):
    ...     meter.add(np.array([float(n)]), np.array([float(need)]), window_s=30.0)
    >>> meter.paid, meter.static_peak
    (45100.0, 48000.0)
    """

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.paid = 0.0
        self.windows = 0
        self.seconds = 0.0
        self._before: Array | None = None
        self._peak: Array | None = None

    def add(self, replicas: Array, need: Array, window_s: float) -> None:
        """One measured window of ``window_s`` seconds: replicas and need per operator, in the same
        order each time; need may be NaN.
        """
        step = np.zeros_like(replicas) if self._before is None else replicas - self._before
        p = self.prices
        changes = (
            p.up * np.maximum(step, 0).sum()
            + p.down * np.maximum(-step, 0).sum()
            + p.route * np.count_nonzero(step)
        )
        self.paid += float(p.replica_second * window_s * replicas.sum() + changes)
        self.windows += 1
        self.seconds += window_s
        self._before = replicas
        self._peak = need if self._peak is None else np.fmax(self._peak, need)

    @property
    def peak(self) -> float | None:
        """Replicas of all operators at their highest need so far; None while some operator's need
        was never known.
        """
        if self._peak is None or np.isnan(self._peak).any():
            return None
        return float(self._peak.sum())

    @property
    def static_peak(self) -> float | None:
        return None if self.peak is None else self.seconds * self.peak * self.prices.replica_second
