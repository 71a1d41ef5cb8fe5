"""Jobs, queues and what is counted about them: compiled parts that the event engine and the
micro-batch engine share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretide.jit import lean_inner as inner
from foretide.sim.events.rng import WORK, exponential, uniform
from foretide.sim.events.state import (
    BY_VALUE,
    COMPLETED,
    COMPLETED_WITHIN,
    COMPLETION_S,
    DONE,
    EXPONENTIAL,
    FIXED,
    FREE,
    FREE_LEFT,
    NONE,
    TARGET_S,
    age_bin,
)


@inner
def new_job(s: Any, entered: float, value: int) -> Any:
    """A job from the pool, which is not empty."""
    job = s.count[FREE]
    s.count[FREE] = s.jobs[job].next
    s.count[FREE_LEFT] -= 1
    s.jobs[job].entered = entered
    s.jobs[job].value = value
    s.jobs[job].kin_after = job
    s.jobs[job].kin_before = job
    return job


@inner
def _new_child(s: Any, parent: int) -> Any:
    """Another job of the same input."""
    child = new_job(s, s.jobs[parent].entered, s.jobs[parent].value)
    after = s.jobs[parent].kin_after
    s.jobs[child].kin_before = parent
    s.jobs[child].kin_after = after
    s.jobs[after].kin_before = child
    s.jobs[parent].kin_after = child
    return child


@inner
def free_job(s: Any, job: int, now: float) -> None:
    """Back into the pool. The last job of an input completes it, also when that job was dropped."""
    after, before = s.jobs[job].kin_after, s.jobs[job].kin_before
    if after == job:
        took_s = now - s.jobs[job].entered
        s.w_trees[COMPLETED] += 1.0
        s.w_trees[COMPLETION_S] += took_s
        if took_s <= s.clock[TARGET_S]:
            s.w_trees[COMPLETED_WITHIN] += 1.0
        s.tree_ages[age_bin(took_s)] += 1
    else:
        s.jobs[before].kin_after = after
        s.jobs[after].kin_before = before
    s.jobs[job].next = s.count[FREE]
    s.count[FREE] = job
    s.count[FREE_LEFT] += 1


@inner
def push(s: Any, slot: int, job: int) -> None:
    """To the tail of a slot's queue."""
    s.jobs[job].next = NONE
    if s.slots[slot].length == 0:
        s.slots[slot].head = job
    else:
        s.jobs[s.slots[slot].tail].next = job
    s.slots[slot].tail = job
    s.slots[slot].length += 1


@inner
def pop(s: Any, slot: int) -> Any:
    """From the head of a slot's queue, which is not empty."""
    job = s.slots[slot].head
    s.slots[slot].head = s.jobs[job].next
    s.slots[slot].length -= 1
    return job


@inner
def note_arrival(s: Any, op: int, job: int, now: float) -> None:
    """Count an arrival, and the gap since the one before."""
    s.jobs[job].arrived = now
    s.w_ops[op].arrived += 1.0
    gap = now - s.ops[op].last_arrival
    if gap >= 0.0:  # not a number before the first arrival
        s.w_ops[op].gaps += 1.0
        s.w_ops[op].gap += gap
        s.w_ops[op].gap2 += gap * gap
    s.ops[op].last_arrival = now


@inner
def draw_service(s: Any, op: int, value: int) -> Any:
    """Busy seconds of an event at an operator, by the operator's law."""
    law = s.ops[op].law
    if law == BY_VALUE:
        drawn = s.by_value_s[op, value]
    else:
        drawn = s.ops[op].mean_s
        if law == EXPONENTIAL:
            drawn *= exponential(s.rng, WORK)
        elif law != FIXED:
            drawn *= 1.0 + s.ops[op].spread * (2.0 * uniform(s.rng, WORK) - 1.0)
    s.w_ops[op].works += 1.0
    s.w_ops[op].work_s += drawn
    s.w_ops[op].work2 += drawn * drawn
    return drawn


@inner
def note_done(s: Any, op: int, job: int, now: float) -> None:
    """An operator is done with an event."""
    age = now - s.jobs[job].entered
    s.w_ops[op].processed += 1.0
    s.w_ops[op].sojourn += now - s.jobs[job].arrived
    s.w_ops[op].age += age
    if age <= s.clock[TARGET_S]:
        s.w_ops[op].within += 1.0
    s.ages[op, age_bin(age)] += 1


@inner
def note_left(s: Any, job: int, now: float) -> None:
    """An event left the topology: processing it emitted nothing more."""
    s.done[s.count[DONE]] = np.float32(now - s.jobs[job].entered)
    s.count[DONE] += 1


@inner
def _copies(s: Any, edge: int) -> int:
    """Events emitted on an edge for one processed: the whole part of its share, and one more by the
    chance of its fraction.
    """
    share = s.edge_share[edge]
    whole = int(share)
    if share > whole and uniform(s.rng, WORK) < share - whole:
        whole += 1
    return whole


@inner
def _one_edge(s: Any, op: int) -> Any:
    """The edge that an operator which splits sends an event on: the one whose cumulated share holds
    a draw; the end when none does.
    """
    edge, end = s.ops[op].edges, s.ops[op].edges_end
    draw = uniform(s.rng, WORK)
    target = edge
    for e in range(edge, end):
        target += draw >= s.edge_share[e]
    return target


@inner
def emit(s: Any, op: int, job: int, now: float) -> int:
    """The jobs that a processed event is sent on as, a list linked by ``next``; the first of them
    is the event's own job.

    An event that is not sent on leaves the topology.
    """
    if s.ops[op].splits:
        edge = _one_edge(s, op)
        if edge < s.ops[op].edges_end:
            s.w_edge[edge] += 1.0
            s.jobs[job].to = s.edge_to[edge]
            s.jobs[job].next = NONE
            return job
        note_left(s, job, now)
        free_job(s, job, now)
        return NONE
    head = NONE
    for edge in range(s.ops[op].edges, s.ops[op].edges_end):
        n = _copies(s, edge)
        s.w_edge[edge] += n
        for _ in range(n):
            child = job if head == NONE else _new_child(s, job)
            s.jobs[child].to = s.edge_to[edge]
            s.jobs[child].next = head
            head = child
    if head == NONE:
        note_left(s, job, now)
        free_job(s, job, now)
    return head
