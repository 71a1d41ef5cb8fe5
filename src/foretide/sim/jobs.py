"""Jobs, queues and what is counted about them: compiled parts that the event engine and the micro-batch engine share."""

from __future__ import annotations

from typing import Any

import numpy as np

from foretide.jit import lean_inner as inner
from foretide.sim.rng import WORK, exponential, uniform
from foretide.sim.state import (
    AGE,
    ARRIVED,
    BY_VALUE,
    DONE,
    EDGES,
    EDGES_END,
    EXPONENTIAL,
    FIXED,
    FREE,
    FREE_LEFT,
    GAP,
    GAP2,
    GAPS,
    HEAD,
    LAST_ARRIVAL,
    LAW,
    LENGTH,
    MEAN_S,
    NONE,
    PROCESSED,
    SOJOURN,
    SPLITS,
    SPREAD,
    TAIL,
    TARGET_S,
    WITHIN,
    WORK2,
    WORK_S,
    WORKS,
    age_bin,
)


@inner
def new_job(s: Any, entered: float, value: int) -> Any:
    job = s.count[FREE]
    s.count[FREE] = s.job_next[job]
    s.count[FREE_LEFT] -= 1
    s.job_entered[job] = entered
    s.job_value[job] = value
    return job


@inner
def free_job(s: Any, job: int) -> None:
    s.job_next[job] = s.count[FREE]
    s.count[FREE] = job
    s.count[FREE_LEFT] += 1


@inner
def push(s: Any, slot: int, job: int) -> None:
    """To the tail of a slot's queue."""
    s.job_next[job] = NONE
    if s.slot_i[slot, LENGTH] == 0:
        s.slot_i[slot, HEAD] = job
    else:
        s.job_next[s.slot_i[slot, TAIL]] = job
    s.slot_i[slot, TAIL] = job
    s.slot_i[slot, LENGTH] += 1


@inner
def pop(s: Any, slot: int) -> Any:
    """From the head of a slot's queue, which is not empty."""
    job = s.slot_i[slot, HEAD]
    s.slot_i[slot, HEAD] = s.job_next[job]
    s.slot_i[slot, LENGTH] -= 1
    return job


@inner
def note_arrival(s: Any, op: int, job: int, now: float) -> None:
    s.job_arrived[job] = now
    s.w_op[op, ARRIVED] += 1.0
    gap = now - s.op_f[op, LAST_ARRIVAL]
    if gap >= 0.0:  # not a number before the first arrival
        s.w_op[op, GAPS] += 1.0
        s.w_op[op, GAP] += gap
        s.w_op[op, GAP2] += gap * gap
    s.op_f[op, LAST_ARRIVAL] = now


@inner
def draw_service(s: Any, op: int, value: int) -> Any:
    """Busy seconds of an event at an operator, by the operator's law."""
    law = s.op_i[op, LAW]
    if law == BY_VALUE:
        drawn = s.by_value_s[op, value]
    else:
        drawn = s.op_f[op, MEAN_S]
        if law == EXPONENTIAL:
            drawn *= exponential(s.rng, WORK)
        elif law != FIXED:
            drawn *= 1.0 + s.op_f[op, SPREAD] * (2.0 * uniform(s.rng, WORK) - 1.0)
    s.w_op[op, WORKS] += 1.0
    s.w_op[op, WORK_S] += drawn
    s.w_op[op, WORK2] += drawn * drawn
    return drawn


@inner
def note_done(s: Any, op: int, job: int, now: float) -> None:
    """An operator is done with an event."""
    age = now - s.job_entered[job]
    s.w_op[op, PROCESSED] += 1.0
    s.w_op[op, SOJOURN] += now - s.job_arrived[job]
    s.w_op[op, AGE] += age
    if age <= s.clock[TARGET_S]:
        s.w_op[op, WITHIN] += 1.0
    s.ages[op, age_bin(age)] += 1


@inner
def note_left(s: Any, job: int, now: float) -> None:
    """An event left the topology: processing it emitted nothing more."""
    s.done[s.count[DONE]] = np.float32(now - s.job_entered[job])
    s.count[DONE] += 1


@inner
def copies(s: Any, op: int, draw: float, edge: int, before: float) -> int:
    """Events emitted on an edge for one processed.

    An operator that splits takes one draw for all its edges: the edge whose cumulated share holds it. Any other emits on each edge
    the whole part of its share and one more by the chance of its fraction.
    """
    share = s.edge_share[edge]
    if s.op_i[op, SPLITS]:
        return 1 if before <= draw < before + share else 0
    whole = int(share)
    if share > whole and uniform(s.rng, WORK) < share - whole:
        whole += 1
    return whole


@inner
def emit(s: Any, op: int, job: int, now: float, first: int) -> int:
    """Make the jobs that an event's processing sends on, as a list linked by ``job_next`` in front of ``first``; its new head.

    Where each goes is kept in ``job_arrived`` until it is delivered.
    """
    begin, end = s.op_i[op, EDGES], s.op_i[op, EDGES_END]
    draw = uniform(s.rng, WORK) if s.op_i[op, SPLITS] else 0.0
    before, head, sent = 0.0, first, False
    for edge in range(begin, end):
        n = copies(s, op, draw, edge, before)
        before += s.edge_share[edge]
        s.w_edge[edge] += n
        for _ in range(n):
            child = new_job(s, s.job_entered[job], s.job_value[job])
            s.job_arrived[child] = s.edge_to[edge]
            s.job_next[child] = head
            head = child
            sent = True
    if not sent:
        note_left(s, job, now)
    return head
