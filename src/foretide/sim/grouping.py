"""Which replica gets an event: one compiled function, a whole-number code per method.

The rules are those of ``foretide.balance``, event by event. ``choose`` sees the whole state, so that a grouping may look at queues, at what
replicas did in the last window or at the event's value. A new grouping is one code and one branch here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretide.balance import osg_machine
from foretide.jit import lean_inner as inner
from foretide.sim.state import (
    BASE,
    BUSY_S,
    BY_VALUE,
    CURSOR,
    EVENT_S,
    FREE_AT,
    GIVEN,
    GROUPING,
    LAW,
    LENGTH,
    MEAN_S,
    NOW,
    REPLICAS,
    SLOT_DONE,
    UTILIZATION,
    WINDOW_S,
    State,
)

SHARED, SHUFFLE, KEY, TWO_CHOICES, LOAD_AWARE, OSG, ORACLE = range(7)
GROUPINGS = {
    "shared": SHARED,
    "shuffle": SHUFFLE,
    "key-hash": KEY,
    "two-choices": TWO_CHOICES,
    "load-aware": LOAD_AWARE,
    "osg": OSG,
    "oracle": ORACLE,
}


@inner
def hashed(value: int) -> Any:
    """A 64-bit mix of a value (the finalizer of splitmix64, Steele et al. 2014)."""
    x = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner
def choose(s: Any, op: int, value: int, now: float) -> Any:
    """The replica, in ``[0, active replicas)``, whose queue an event joins. Not asked for the shared queue.

    shuffle: one after another. key-hash: by the event's value, so that equal values meet. two-choices: the less used of a value's two
    replicas. load-aware: the lowest utilization. osg: the least estimated work. oracle: the least true work (it knows the costs).
    """
    replicas, method = s.op_i[op, REPLICAS], s.op_i[op, GROUPING]
    if method == KEY:
        return np.int64(hashed(value) % np.uint64(replicas))
    if method == OSG:
        return osg_machine.choose(s.osg, op, s.op_i[op, BASE], replicas, hashed(value), now)
    if method == TWO_CHOICES:
        return _less_used(s, op, value)
    if method == LOAD_AWARE:
        return _least_utilized(s, op)
    if method == ORACLE:
        return _soonest_free(s, op, value, now)
    turn = s.op_i[op, CURSOR] + 1
    turn = turn if turn < replicas else 0
    s.op_i[op, CURSOR] = turn
    return turn


@inner
def _less_used(s: Any, op: int, value: int) -> Any:
    base, replicas = s.op_i[op, BASE], np.uint64(s.op_i[op, REPLICAS])
    first = np.int64(hashed(value) % replicas)
    second = np.int64(hashed(value + 1_000_003) % replicas)
    chosen = first if s.fair[base + first, GIVEN] <= s.fair[base + second, GIVEN] else second
    s.fair[base + chosen, GIVEN] += 1.0
    return chosen


@inner
def _least_utilized(s: Any, op: int) -> Any:
    """Greedy on utilization; round-robin among equals and when everybody is full (``balance.load_aware``)."""
    base, replicas = s.op_i[op, BASE], s.op_i[op, REPLICAS]
    turn = (s.op_i[op, CURSOR] + 1) % replicas
    chosen = turn
    for j in range(1, replicas):
        at = (turn + j) % replicas
        if s.fair[base + at, UTILIZATION] < s.fair[base + chosen, UTILIZATION]:
            chosen = at
    if s.fair[base + chosen, UTILIZATION] >= 1.0:
        chosen = turn
    s.fair[base + chosen, UTILIZATION] += s.fair[base + chosen, EVENT_S] / s.clock[WINDOW_S]
    s.op_i[op, CURSOR] = chosen
    return chosen


@inner
def _soonest_free(s: Any, op: int, value: int, now: float) -> Any:
    base, chosen = s.op_i[op, BASE], 0
    for j in range(1, s.op_i[op, REPLICAS]):
        if s.fair[base + j, FREE_AT] < s.fair[base + chosen, FREE_AT]:
            chosen = j
    cost = s.by_value_s[op, value] if s.op_i[op, LAW] == BY_VALUE else s.op_f[op, MEAN_S]
    s.fair[base + chosen, FREE_AT] = max(s.fair[base + chosen, FREE_AT], now) + cost
    return chosen


@inner
def served(s: Any, op: int, slot: int, value: int, work: tuple[float, float]) -> None:
    """A replica is done with an event: ``work`` is the seconds of service (0 when it dropped the event) and the instant it ended."""
    if s.op_i[op, GROUPING] == OSG:
        osg_machine.finished(s.osg, op, s.op_i[op, BASE], s.op_i[op, REPLICAS], slot, hashed(value), work)


@inner
def regroup(s: Any, op: int, replicas: int) -> None:
    """The replica count is about to change; waiting events will be dealt anew."""
    if s.op_i[op, GROUPING] == OSG:
        osg_machine.resized(s.osg, op, s.op_i[op, BASE], (s.op_i[op, REPLICAS], replicas), s.clock[NOW])
    for slot in range(s.op_i[op, BASE], s.op_i[op, BASE] + replicas):
        s.fair[slot, GIVEN] = 0.0
        s.fair[slot, UTILIZATION] = 0.0
        s.fair[slot, FREE_AT] = 0.0


def close_groups(s: State, window_s: float) -> None:
    """What the window taught, before its counters are cleared: each replica's service time, and what still waits for it."""
    done = s.w_slot[:, SLOT_DONE]
    worked = done > 0
    now_s = s.w_slot[worked, BUSY_S] / done[worked]
    before_s = s.fair[worked, EVENT_S]
    s.fair[worked, EVENT_S] = np.where(before_s > 0, 0.5 * (before_s + now_s), now_s)
    s.clock[WINDOW_S] = window_s
    s.fair[:, UTILIZATION] = s.slot_i[:, LENGTH] * s.fair[:, EVENT_S] / window_s
    s.fair[:, GIVEN] = 0.0
