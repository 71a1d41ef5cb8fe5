"""Which replica gets an event: one compiled function, a whole-number code per method.

The rules are those of ``foretide.balance``, event by event. ``choose`` sees the whole state, so
that a rule may read queues, what replicas did in the last window or the event's value. A grouping
needs no rule here: without one its Python ``assign`` is called (``python_groupings``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretide.balance import osg_machine
from foretide.jit import lean_inner as inner
from foretide.sim.codes import CUSTOM, KEY, LOAD_AWARE, ORACLE, OSG, TWO_CHOICES
from foretide.sim.events.python_groupings import call_choose, call_served
from foretide.sim.events.state import BY_VALUE, NOW, WINDOW_S, EngineState


@inner
def hashed(value: int) -> Any:
    """A 64-bit mix of a value (the finalizer of splitmix64, Steele et al. 2014)."""
    x = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner
def choose(s: Any, op: int, value: int, now: float) -> Any:
    """The replica, in ``[0, active replicas)``, whose queue an event joins; not called for the
    shared queue.

    shuffle: one after another. key-hash: by the event's value, so that equal values meet.
    two-choices: the less used of a value's two replicas. load-aware: the lowest utilization. osg:
    the least estimated work. oracle: the least true work (it knows the costs). Any other: Python.
    """
    replicas, method = s.ops[op].replicas, s.ops[op].grouping
    if method == KEY:
        return np.int64(hashed(value) % np.uint64(replicas))
    if method == OSG:
        return _osg_choice(s.osg, op, s.ops[op].base, replicas, hashed(value), now)
    if method == TWO_CHOICES:
        return _less_used(s, op, value)
    if method == LOAD_AWARE:
        return _least_utilized(s, op)
    if method == ORACLE:
        return _soonest_free(s, op, value, now)
    if method == CUSTOM:
        return _call_choose(s.python, op, value, now)
    turn = s.ops[op].cursor + 1
    turn = turn if turn < replicas else 0
    s.ops[op].cursor = turn
    return turn


@inner
def _less_used(s: Any, op: int, value: int) -> Any:
    base, replicas = s.ops[op].base, np.uint64(s.ops[op].replicas)
    first = np.int64(hashed(value) % replicas)
    second = np.int64(hashed(value + 1_000_003) % replicas)
    replica = first if s.fair[base + first].assigned <= s.fair[base + second].assigned else second
    s.fair[base + replica].assigned += 1.0
    return replica


@inner
def _least_utilized(s: Any, op: int) -> Any:
    """Greedy on utilization; round-robin among equals and when all are full
    (``balance.load_aware``).
    """
    base, replicas = s.ops[op].base, s.ops[op].replicas
    turn = (s.ops[op].cursor + 1) % replicas
    replica = turn
    for j in range(1, replicas):
        at = (turn + j) % replicas
        if s.fair[base + at].utilization < s.fair[base + replica].utilization:
            replica = at
    if s.fair[base + replica].utilization >= 1.0:
        replica = turn
    s.fair[base + replica].utilization += s.fair[base + replica].event_s / s.clock[WINDOW_S]
    s.ops[op].cursor = replica
    return replica


@inner
def _soonest_free(s: Any, op: int, value: int, now: float) -> Any:
    base, replica = s.ops[op].base, 0
    for j in range(1, s.ops[op].replicas):
        if s.fair[base + j].free_at < s.fair[base + replica].free_at:
            replica = j
    cost = s.by_value_s[op, value] if s.ops[op].law == BY_VALUE else s.ops[op].mean_s
    s.fair[base + replica].free_at = max(s.fair[base + replica].free_at, now) + cost
    return replica


@inner
def _osg_choice(m: Any, op: int, base: int, replicas: int, key: Any, now: float) -> Any:
    # Known at compile time, here and below: a state without osg has no machines, and its engine is
    # compiled without their code.
    if m is not None:
        return osg_machine.choose(m, op, base, replicas, key, now)
    return 0


@inner
def _call_choose(python: Any, op: int, value: int, now: float) -> Any:
    if python is not None:
        return call_choose(python.choose, (np.int64(op), hashed(value), np.float64(now)))
    return 0


@inner
def _call_served(python: Any, op: int, replica: int, value: int, seconds: float) -> None:
    if python is not None:
        call_served(
            python.served, (np.int64(op), np.int64(replica), hashed(value), np.float64(seconds))
        )


@inner
def _report(
    m: Any, op: int, base: int, replicas: int, slot: int, key: Any, work: tuple[float, float]
) -> None:
    if m is not None:
        osg_machine.finished(m, op, base, replicas, slot, key, work)


@inner
def _report_size(m: Any, op: int, base: int, counts: tuple[int, int], now: float) -> None:
    if m is not None:
        osg_machine.resized(m, op, base, counts, now)


@inner
def served(s: Any, op: int, slot: int, value: int, work: tuple[float, float]) -> None:
    """A replica is done with an event: ``work`` is the seconds of service (0 when it dropped the
    event) and the instant it ended.
    """
    if s.ops[op].grouping == OSG:
        _report(s.osg, op, s.ops[op].base, s.ops[op].replicas, slot, hashed(value), work)
    elif s.ops[op].grouping == CUSTOM:
        _call_served(s.python, op, np.int64(slot) - s.ops[op].base, value, work[0])


@inner
def regroup(s: Any, op: int, replicas: int) -> None:
    """The replica count is about to change; waiting events will be distributed again."""
    if s.ops[op].grouping == OSG:
        _report_size(s.osg, op, s.ops[op].base, (s.ops[op].replicas, replicas), s.clock[NOW])
    for slot in range(s.ops[op].base, s.ops[op].base + replicas):
        s.fair[slot].assigned = 0.0
        s.fair[slot].utilization = 0.0
        s.fair[slot].free_at = 0.0


def close_groups(s: EngineState, window_s: float) -> None:
    """Before the window's counters are cleared: update each replica's service time and the work
    that still waits for it.
    """
    done, event_s = s.w_slots["done"], s.fair["event_s"]
    worked = done > 0
    now_s = s.w_slots["busy_s"][worked] / done[worked]
    before_s = event_s[worked]
    event_s[worked] = np.where(before_s > 0, 0.5 * (before_s + now_s), now_s)
    s.clock[WINDOW_S] = window_s
    s.fair["utilization"] = s.slots["length"] * event_s / window_s
    s.fair["assigned"] = 0.0
