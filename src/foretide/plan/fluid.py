"""Work as a fluid that is served in order: what is done, what is late, and what is out of reach.

Work is counted in replica-windows: 1.0 is what one busy replica does in one window. Work that came
at time u is late unless all that came up to u is done by u and the delay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from foretide.jit import inner
from foretide.model import Array
from foretide.plan.optimum import Schedule


def served(work: Array, schedule: Schedule) -> Array:
    """Work that a schedule does in each window (row) and part of it, in order, what is left
    waiting carried on.

    >>> served(np.array([[1.0], [3.0], [1.0]]), np.array([1, 2, 2])).ravel()
    array([1., 2., 2.])
    """
    capacity = np.repeat(schedule / work.shape[1], work.shape[1])
    done, waiting = np.zeros(work.size), 0.0
    for i, came in enumerate(work.ravel()):
        done[i] = min(waiting + came, capacity[i])
        waiting += came - done[i]
    return done.reshape(work.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Reachable:
    """What the most replicas that there can be get done (``work``), the windows in which all of
    them must work for that (``full``), how much is ``late`` all the same, and the ``longest`` queue
    in those windows, in replica-windows.
    """

    work: Array
    full: Array
    late: float
    longest: float


def reachable(work: Array, replicas: int, windows: float) -> Reachable:
    """Work (one row per window) as the most replicas get it done, wherever their queue grows so
    long that something is late; elsewhere as it came.

    >>> found = reachable(np.array([[1.0], [9.0], [1.0], [0.0]]), replicas=4, windows=1.0)
    >>> found.work.ravel(), found.full.tolist()
    (array([1., 4., 4., 2.]), [False, True, True, True])
    >>> round(found.late, 3)  # a fifth of the nine and a third of the one after them
    2.133
    """
    none = np.zeros(len(work), dtype=bool)
    if work.max() * work.shape[1] <= replicas:
        return Reachable(work, none, 0.0, 0.0)
    done = served(work, np.full(len(work), replicas))
    queue = np.cumsum((work - done).sum(axis=1))
    waits = queue > 1e-9
    if not (queue > windows * replicas).any():
        return Reachable(work, none, 0.0, 0.0)
    late = _late_windows(work.ravel(), replicas / work.shape[1], windows * work.shape[1])
    late = late.reshape(work.shape).sum(axis=1)
    begins = np.flatnonzero(waits & ~np.append(False, waits[:-1]))
    ends = np.flatnonzero(waits & ~np.append(waits[1:], False)) + 2
    shifted, full, total = work.copy(), none, 0.0
    for begin, end in zip(begins, ends, strict=True):
        if queue[begin:end].max() > windows * replicas:
            shifted[begin:end], full[begin:end] = done[begin:end], True
            total += float(late[begin:end].sum())
    return Reachable(shifted, full, total, float(queue.max()))


def _late_windows(work: Array, capacity: float, delay: float) -> Array:
    """The work that becomes late in each window with that capacity in all of them."""
    due, slope = deadlines(work, delay)
    late, queue = np.zeros(len(work)), 0.0
    for t, came in enumerate(work):
        late[t] = late_work(due[t], slope[t], delay - math.floor(delay), queue, capacity)
        queue = max(0.0, queue + came - capacity)
    return late


def deadlines(came: Array, delay: float) -> tuple[Array, Array]:
    """For every window and both of its parts (before and after the fraction of ``delay``): how much
    work is due at the part's start, counted from what came before the window (so <= 0), and how
    fast more falls due, per window.
    """
    whole, part = math.floor(delay), delay - math.floor(delay)
    padded = np.concatenate([np.zeros(whole + 1), came])
    cumulated = np.concatenate([[0.0], np.cumsum(padded)])
    t = np.arange(len(came)) + whole + 1
    arrived = cumulated[t]
    early, late = padded[t - whole - 1], padded[t - whole]
    at_start = cumulated[t - whole - 1] + early * (1.0 - part)
    due = np.stack([at_start - arrived, cumulated[t - whole] - arrived], axis=1)
    return due, np.stack([early, late], axis=1)


@inner
def _late_part(d0: float, d1: float, length: float, slope: float) -> float:
    """Work that falls due too early in a part of a window: ``d`` is due less done, linear."""
    if d0 <= 1e-9 and d1 <= 1e-9:
        return 0.0
    if d0 > 0.0 and d1 > 0.0:
        return slope * length
    return slope * length * (max(d0, d1) / (max(d0, d1) - min(d0, d1)))


@inner
def late_work(due: Any, slope: Any, part: float, backlog: float, capacity: float) -> float:
    """Work that becomes late in a window that starts with ``backlog`` and serves ``capacity``."""
    d0 = due[0] + backlog
    d1 = d0 + (slope[0] - capacity) * part
    e0 = due[1] + backlog - capacity * part
    e1 = e0 + (slope[1] - capacity) * (1.0 - part)
    return _late_part(d0, d1, part, slope[0]) + _late_part(e0, e1, 1.0 - part, slope[1])
