"""How old the events of a fluid are when they leave: first in, first out.

While an operator cannot keep up, its queue is a fluid that is served in order. An event that leaves
at t was the ``A(t) - Q(t)``-th to come, with A all that was offered by then and Q what waits where
replicas cannot keep up, counted in inputs of the app; so it came at ``A^-1(A(t) - Q(t))``. Chance
in the queues of the other operators comes on top: exponential around its mean (Poisson arrivals) or
uniform (a second's events at once). Branches of a split are not told apart.
"""

from __future__ import annotations

import numpy as np

from foretide.model import Array, Latency
from foretide.sim.fluid.flows import R_CHANCE, R_LEFT, R_OFFERED, R_QUEUE, R_TIME

SHARES = (np.arange(50) + 0.5) / 50
EXPONENTIAL = -np.log(1 - SHARES) / np.mean(-np.log(1 - SHARES))
UNIFORM = 2 * SHARES
FEW = 5
"""Of the 50 points of a shape, every fifth is enough for each of many moments."""
MOMENTS = 24
"""Moments of a window, at most, whose events are told apart."""
WITHIN = np.array([[0.25], [0.75]])
"""Where in a step the events leave that stand for it."""


class Ages:
    """Remembers when the events came that still wait. ``least_s`` is the time of service, and all
    that an event takes without waiting; ``batch_s`` is not 0 where events come a batch at a time.
    """

    def __init__(self, least_s: float, batch_s: float) -> None:
        self.least_s, self.batch_s = least_s, batch_s
        self._came = np.zeros((1, 2))  # when, and how much by then
        self._drift_s = 0.0
        self._behind = False

    def left(self, rows: Array, wait_s: float) -> tuple[Array, Array]:
        """Seconds and events: how old the events were that left in a window, from what the engine
        recorded of it. ``wait_s`` is their mean wait where all replicas kept up.
        """
        shape = UNIFORM if self.batch_s else EXPONENTIAL
        queue, events = rows[:, R_QUEUE], rows[:, R_LEFT]
        self._came = np.vstack([self._came, rows[:, [R_TIME, R_OFFERED]]])
        if not queue.any() and not self._behind:
            self._came, self._drift_s = self._came[-1:], 0.0
            return self.least_s + wait_s * shape, np.full(len(shape), events.sum() / len(shape))
        at, offered = self._came[:, 0], self._came[:, 1]
        first = (rows[:, R_OFFERED] - queue) * (1 - 1e-12)  # the last to leave came before a pause
        drift_s = np.maximum(rows[:, R_TIME] - np.interp(first, offered, at), 0.0)
        before_s = np.concatenate([[self._drift_s], drift_s[:-1]])
        self._drift_s, self._behind = float(drift_s[-1]), bool(queue[-1] > 0)
        self._came = self._came[np.searchsorted(offered, offered[-1] - queue[-1], "right") - 1 :]
        if self.batch_s:
            calm_s = min(wait_s, 0.5 * self.batch_s)
            chance_s = np.where(queue > 0, 0.5 * self.batch_s, calm_s)
        else:
            chance_s = rows[:, R_CHANCE] / np.maximum(events, 1e-300)
        # two moments of every step, in their order
        drift_s = (before_s + (drift_s - before_s) * WITHIN).T.ravel()
        chance_s, events = np.repeat(chance_s, 2), np.repeat(events / 2, 2)
        begins = np.unique(np.linspace(0, len(events), MOMENTS, endpoint=False).astype(np.int64))
        count = np.add.reduceat(events, begins)
        drift_s, chance_s = (
            np.add.reduceat(values * events, begins) / np.maximum(count, 1e-300)
            for values in (drift_s, chance_s)
        )
        some = shape[FEW // 2 :: FEW]
        ages_s = self.least_s + drift_s[:, None] + chance_s[:, None] * (some / some.mean())
        return ages_s.ravel(), np.repeat(count / len(some), len(some))


def latency_of(ages_s: Array, events: Array, target_s: float | None) -> Latency | None:
    """The figures of a window's ages; None where nothing left."""
    count = float(events.sum())
    if count <= 0:
        return None
    order = np.argsort(ages_s)
    reached = np.cumsum(events[order]) / count
    at = np.minimum(np.searchsorted(reached, (0.5, 0.9, 0.99)), len(order) - 1)
    p50, p90, p99 = (ages_s[order[at]] * 1e3).tolist()
    within = None if target_s is None else float(events[ages_s <= target_s].sum())
    return Latency(count, float(ages_s @ events) / count * 1e3, p50, p90, p99, within)
