"""The least replicas whose waiting times keep a promise, for all operators at once.

Record at a time: the wait of an event in a GI/G/k queue exceeds t with probability about ``C(k, a)
* exp(-(k - a) * t / (variability * s))``, with a busy replicas, s seconds of service and Erlang's C
(exact for M/M/k; Allen-Cunneen's factor else). So the wait that a share q stays below is ``ln(C /
(1 - q)) * variability * s / (k - a)``, 0 when C is below 1 - q. The waits of an event's operators
add up; the target less the service times is divided among them by marginal benefit: each further
replica goes where it shortens the sum most.

In micro-batches: ``interval + fixed cost + interval * a / k`` (see ``plan.micro_batch``); what the
target leaves is divided so that the total of replicas is least, ``spare_i ~ sqrt(interval_i *
a_i)``. A batch takes what came during the one before, so its length settles at ``fixed cost / (1 -
a / k)`` where that is longer than the interval: a utilization near 1 means batches without end.
"""

from __future__ import annotations

import math

import numpy as np

from foretide.model import Array

MOST_BUSY = 0.85
"""The highest utilization to plan for: larger batches would be cut into pieces."""
LEAST_BUSY = 0.3
"""The lowest one: below it, more replicas hardly shorten batches of mostly fixed cost."""
EXACT = 512
"""Replicas up to which Erlang's C is computed; above it counts as 1, which is on the safe side."""


def erlang_c(k: Array, a: Array) -> Array:
    """Erlang's C for arrays of replicas and busy replicas; 1 where the replicas cannot keep up.

    >>> erlang_c(np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 3.0])).round(3)
    array([0.5  , 0.333, 1.   ])
    """
    blocked = np.ones_like(a, dtype=float)
    found = np.ones_like(blocked)
    small = k <= EXACT
    for n in range(1, int(k[small].max(initial=0.0)) + 1):
        carried = a * blocked
        blocked = carried / (n + carried)
        at = small & (k == n)
        found[at] = blocked[at] / (1.0 - a[at] / n * (1.0 - blocked[at])) if at.any() else 1.0
    return np.where(a >= k, 1.0, found)


def wait_s(k: Array, a: Array, scale_s: Array, share: float) -> Array:
    """Seconds that a share of the events do not wait longer; ``scale_s`` is variability times
    service time. Infinite where the replicas cannot keep up.
    """
    if share >= 1:
        share = 1 - 1e-9
    beyond = np.log(np.maximum(erlang_c(k, a), 1e-300) / (1.0 - share))
    with np.errstate(divide="ignore", invalid="ignore"):
        waits = np.where(scale_s > 0, np.maximum(beyond, 0.0) * scale_s / (k - a), 0.0)
    return np.where(k > a, waits, np.inf)


def for_tail(a: Array, scale_s: Array, visits: Array, spare_s: float, share: float) -> Array:
    """The least replicas per operator whose waits, weighted by visits, add up to ``spare_s`` at
    most; by marginal benefit, as many as that takes.

    ``a`` are busy replicas. Without any spare time the replicas are those that keep up with room
    for one more.

    >>> for_tail(np.array([7.3, 0.0]), np.array([0.01, 0.01]), np.ones(2), 5.0, 0.99)
    array([8., 1.])
    """
    k = np.floor(a) + 1.0
    if spare_s <= 0:
        return k + (a > 0)
    waits = visits * wait_s(k, a, scale_s, share)
    for _ in range(4 * len(a) + 64):
        if waits.sum() <= spare_s:
            break
        gain = waits - visits * wait_s(k + 1, a, scale_s, share)
        best = np.argmax(np.where(np.isfinite(gain), gain, np.inf))
        k[best] += max(1.0, math.floor(0.02 * k[best]))
        waits[best] = visits[best] * float(
            wait_s(k[best : best + 1], a[best : best + 1], scale_s[best : best + 1], share)[0]
        )
    return k


def for_batches(a: Array, interval_s: Array, fixed_s: Array, target_s: float) -> Array:
    """Replicas per operator (not rounded) that keep a chain of micro-batches within the target;
    what keeps up where no number of replicas can.

    >>> for_batches(np.array([2.0]), np.array([1.0]), np.array([0.5]), 3.5).round(2)
    array([2.35])
    """
    keeps_up = a / utilization(a, interval_s, fixed_s, target_s)
    spare_s = target_s - float((interval_s + fixed_s).sum())
    if spare_s <= 0:
        return keeps_up
    weight = np.sqrt(interval_s * a)
    if weight.sum() <= 0:
        return keeps_up
    spare = np.maximum(spare_s * weight / weight.sum(), 1e-9)
    return np.asarray(np.maximum(keeps_up, interval_s * a / spare))


def utilization(a: Array, interval_s: Array, fixed_s: Array, target_s: float) -> float:
    """The highest utilization, common to all operators, at which a chain of micro-batches stays
    within the target; ``MOST_BUSY`` where none does. A batch takes ``max(interval, fixed / (1 - a /
    k))`` seconds, and an event waits for one before its own.

    >>> two, second = np.array([1.9]), np.array([1.0])
    >>> round(utilization(two, second, 0.2 * second, 10.0), 2)  # a third replica is not needed
    0.85
    >>> round(utilization(two, second, second, 5.0), 2)  # three replicas take 5.5 s
    0.63
    >>> round(utilization(two, second, second, 2.0), 2)  # no number of replicas can
    0.85
    """

    def takes_s(busy: float) -> float:
        share = a / np.maximum(1.0, np.ceil(a / busy * (1 - 1e-9)))
        batch_s = np.maximum(interval_s, fixed_s / np.maximum(1.0 - share, 1e-9))
        return float((batch_s + fixed_s + batch_s * share).sum())

    low, high = LEAST_BUSY, MOST_BUSY
    if takes_s(high) <= target_s or takes_s(low) > target_s:
        return high
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if takes_s(middle) <= target_s else (low, middle)
    return low
