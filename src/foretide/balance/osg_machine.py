"""Online Shuffle Grouping as published (DABS-Storm, section 5.2): the two state machines, event by
event.

A replica is in START until it executed N events, then takes a snapshot of W/F; every N events it
compares (eq. 14): stable within ``mu``, it sends both sketches to the scheduler, resets them and
starts over; else the snapshot is renewed. The scheduler is in ROUND_ROBIN until every replica sent
a pair; then SEND_ALL (the next k events, round-robin, carry a sync request), WAIT_ALL (collect how
far each replica is off the scheduler's estimate), RUN (each event to the replica of least
estimate). New sketches lead back to SEND_ALL.

Two corrections. The paper's estimate is a replica's *cumulated* execution time. A replica that got
more work in the past and has long finished it then looks busier than one that idled, and the next
events pile up at the idle one. We estimate the instant at which a replica will be free,
``max(estimate, now) + cost``: the same while no replica idles, and right when one does.

Second, the paper relies on sync requests alone to correct an estimate. A replica whose pair is out
of date is flooded; its answer then comes after its whole queue, later than the next pair of another
replica, which voids the round: the flooded replica counts as idle for minutes. But a pair contains
how many events its sender has executed (the sum of a row of F), so the scheduler can compute what
the sender still holds: it is free at ``now + (assigned - executed) * W/F`` of the whole pair, and
the sync request only refines that.

State is flat arrays over *slots* (places for replicas), so that a compiled engine can hold many
operators' machines in one tuple; no array is sliced, so that compiled code need not count
references. Queues are first-in first-out, so a sync request needs no mark on its event: it is
answered when the replica has done as many events as were assigned to it when the request was sent.
Messages take no time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from foretide.balance.count_min import cell, coefficients_of, shape
from foretide.jit import inner

ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = range(4)
START, STABILIZING = range(2)
# slot_i
STATE, IN_WINDOW, ASSIGNED, DONE, SYNC_AT, HAVE, SLOT_I = range(7)
# slot_f: when the replica will be free, by estimate; that when the sync request left; the answer;
# mean cost of what was received
FREE_AT, SYNC_AT_S, DELTA_S, MEAN_S, SLOT_F = range(5)
# op_i
PHASE, SENT, REPLIES, TURN, OP_I = range(5)


class Machine(NamedTuple):
    """The machines of all operators of a world."""

    counts: Any  # F and W of each replica, (slots, rows, columns)
    times: Any
    snapshot: Any
    known_counts: Any  # the pair each replica sent last, at the scheduler
    known_times: Any
    slot_i: Any
    slot_f: Any
    op_i: Any
    coefficients: Any
    constants: Any  # N, mu


def new_machine(
    operators: int,
    slots: int,
    window: int = 256,
    mu: float = 0.05,
    seed: int = 0,
    error: float = 0.05,
) -> Machine:
    """Every operator in ROUND_ROBIN, every replica in START. ``window`` is N, which the paper
    leaves to the user: small forgets faster, large estimates better. ``error`` is the sketches'
    epsilon and delta.
    """
    rows, columns = shape(error, error)
    sketches = np.zeros((5, slots, rows, columns))
    slot_i = np.zeros((slots, SLOT_I), dtype=np.int64)
    slot_i[:, SYNC_AT] = -1
    return Machine(
        sketches[0],
        sketches[1],
        sketches[2],
        sketches[3],
        sketches[4],
        slot_i,
        np.zeros((slots, SLOT_F)),
        np.zeros((operators, OP_I), dtype=np.int64),
        coefficients_of(rows, seed),
        np.array([window, mu], dtype=float),
    )


@inner
def _synchronize(m: Any, op: int, base: int, replicas: int) -> None:
    """All answers are here: correct the estimates and run."""
    for slot in range(base, base + replicas):
        m.slot_f[slot, FREE_AT] += m.slot_f[slot, DELTA_S]
    m.op_i[op, PHASE] = RUN


@inner
def estimate(m: Any, slot: int, key: Any) -> Any:
    """Seconds that an event would take at a replica, by the pair it sent last: ``W/F`` where F is
    smallest.
    """
    rows, columns = m.known_counts.shape[1], m.known_counts.shape[2]
    least, cost = np.inf, m.slot_f[slot, MEAN_S]
    for row in range(rows):
        at = cell(m.coefficients, row, key, columns)
        seen = m.known_counts[slot, row, at]
        if seen < least:
            least = seen
            cost = m.known_times[slot, row, at] / seen if seen > 0 else m.slot_f[slot, MEAN_S]
    return cost


@inner
def _request(m: Any, op: int, base: int, replicas: int) -> None:
    """Begin a new round of sync requests; unanswered ones of the round before are void."""
    m.op_i[op, PHASE] = SEND_ALL
    m.op_i[op, SENT] = 0
    m.op_i[op, REPLIES] = 0
    for slot in range(base, base + replicas):
        m.slot_i[slot, SYNC_AT] = -1


@inner
def choose(m: Any, op: int, base: int, replicas: int, key: Any, now: float) -> Any:
    """The replica, in ``[0, replicas)``, that gets an event at ``now``; its estimate is added to
    what the replica has to do.
    """
    phase = m.op_i[op, PHASE]
    if phase == ROUND_ROBIN:
        replica = m.op_i[op, TURN] % replicas
        m.op_i[op, TURN] = replica + 1
        m.slot_i[base + replica, ASSIGNED] += 1
        return replica
    if phase == SEND_ALL:
        replica = m.op_i[op, SENT]
    else:
        replica = 0
        for j in range(1, replicas):
            if m.slot_f[base + j, FREE_AT] < m.slot_f[base + replica, FREE_AT]:
                replica = j
    slot = base + replica
    m.slot_f[slot, FREE_AT] = max(m.slot_f[slot, FREE_AT], now) + estimate(m, slot, key)
    m.slot_i[slot, ASSIGNED] += 1
    if phase == SEND_ALL:
        m.slot_i[slot, SYNC_AT] = m.slot_i[slot, ASSIGNED]
        m.slot_f[slot, SYNC_AT_S] = m.slot_f[slot, FREE_AT]
        m.op_i[op, SENT] = replica + 1
        if replica + 1 == replicas:
            m.op_i[op, PHASE] = WAIT_ALL
    return replica


@inner
def _change(m: Any, slot: int) -> Any:
    """Relative change between the snapshot and now (eq. 14)."""
    rows, columns = m.snapshot.shape[1], m.snapshot.shape[2]
    off = whole = 0.0
    for i in range(rows):
        for j in range(columns):
            now = m.times[slot, i, j] / m.counts[slot, i, j] if m.counts[slot, i, j] > 0 else 0.0
            off += abs(m.snapshot[slot, i, j] - now)
            whole += m.snapshot[slot, i, j]
    return off / whole if whole > 0 else np.inf


@inner
def _photograph(m: Any, slot: int) -> None:
    rows, columns = m.snapshot.shape[1], m.snapshot.shape[2]
    for i in range(rows):
        for j in range(columns):
            m.snapshot[slot, i, j] = (
                m.times[slot, i, j] / m.counts[slot, i, j] if m.counts[slot, i, j] > 0 else 0.0
            )


@inner
def _send(m: Any, op: int, base: int, replicas: int, slot: int, now: float) -> None:
    """A stable pair goes to the scheduler, which learns what the replica still holds and asks for a
    new round once it has all pairs.
    """
    seen = took = 0.0
    for i in range(m.counts.shape[1]):
        for j in range(m.counts.shape[2]):
            m.known_counts[slot, i, j] = m.counts[slot, i, j]
            m.known_times[slot, i, j] = m.times[slot, i, j]
            seen += m.counts[slot, i, j]
            took += m.times[slot, i, j]
            m.counts[slot, i, j] = 0.0
            m.times[slot, i, j] = 0.0
    m.slot_f[slot, MEAN_S] = took / seen
    m.slot_f[slot, FREE_AT] = (
        now + (m.slot_i[slot, ASSIGNED] - m.slot_i[slot, DONE]) * m.slot_f[slot, MEAN_S]
    )
    m.slot_i[slot, STATE] = START
    m.slot_i[slot, HAVE] = 1
    for other in range(base, base + replicas):
        if m.slot_i[other, HAVE] == 0:
            return
    _request(m, op, base, replicas)


@inner
def finished(
    m: Any, op: int, base: int, replicas: int, slot: int, key: Any, work: tuple[float, float]
) -> None:
    """A replica has executed an event: ``work`` is how many seconds it took and when it ended.

    An event that was dropped unexecuted also counts as done, with no cost.
    """
    seconds, now = work
    m.slot_i[slot, DONE] += 1
    if seconds > 0:
        rows, columns = m.counts.shape[1], m.counts.shape[2]
        for row in range(rows):
            at = cell(m.coefficients, row, key, columns)
            m.counts[slot, row, at] += 1.0
            m.times[slot, row, at] += seconds
        m.slot_i[slot, IN_WINDOW] += 1
    if 0 <= m.slot_i[slot, SYNC_AT] <= m.slot_i[slot, DONE]:
        m.slot_f[slot, DELTA_S] = now - m.slot_f[slot, SYNC_AT_S]
        m.slot_i[slot, SYNC_AT] = -1
        m.op_i[op, REPLIES] += 1
        if m.op_i[op, REPLIES] == replicas:
            _synchronize(m, op, base, replicas)
    if m.slot_i[slot, IN_WINDOW] >= m.constants[0]:
        m.slot_i[slot, IN_WINDOW] = 0
        if m.slot_i[slot, STATE] == STABILIZING and _change(m, slot) <= m.constants[1]:
            _send(m, op, base, replicas, slot, now)
        else:
            m.slot_i[slot, STATE] = STABILIZING
            _photograph(m, slot)


@inner
def resized(m: Any, op: int, base: int, counts: tuple[int, int], now: float) -> None:
    """The replica count went from ``counts[0]`` to ``counts[1]``. Costs belong to keys: a new
    replica starts with what the first one sent.

    The paper says nothing about this. Waiting events are distributed again, so all
    replicas are free now and only finished events count as assigned.
    """
    before, after = counts
    for slot in range(base, base + after):
        m.slot_f[slot, FREE_AT] = now
        m.slot_i[slot, ASSIGNED] = m.slot_i[slot, DONE]
    for slot in range(base + before, base + after):
        for i in range(m.counts.shape[1]):
            for j in range(m.counts.shape[2]):
                m.counts[slot, i, j] = 0.0
                m.times[slot, i, j] = 0.0
                m.known_counts[slot, i, j] = m.known_counts[base, i, j]
                m.known_times[slot, i, j] = m.known_times[base, i, j]
        m.slot_i[slot, STATE] = START
        m.slot_i[slot, IN_WINDOW] = 0
        m.slot_i[slot, HAVE] = m.slot_i[base, HAVE]
        m.slot_f[slot, MEAN_S] = m.slot_f[base, MEAN_S]
    if m.op_i[op, PHASE] != ROUND_ROBIN:
        _request(m, op, base, after)
