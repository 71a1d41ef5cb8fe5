"""The micro-batch engine: operators as Spark runs them. Compiled; deterministic by seed.

Every operator is a query of its own. At its trigger it takes all events that wait and deals them out to ``replicas`` tasks by the
grouping; the batch costs a fixed overhead and then lasts as long as its slowest task; only when it ends are its events processed, its
outputs delivered and its busy time known. Triggers are multiples of the interval; a batch that overran is followed at once by the
next, and no batch runs without events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from foretide.apps import App
from foretide.jit import lean_entry as entry
from foretide.jit import lean_inner as inner
from foretide.sim.arrivals import new_arrival, schedule_arrival
from foretide.sim.engine import DONE_FULL, FINISHED, POOL_FULL
from foretide.sim.grouping import choose, regroup, served
from foretide.sim.heap import heap_pop, heap_push
from foretide.sim.jobs import draw_service, emit, free_job, note_arrival, note_done, pop, push
from foretide.sim.state import (
    BASE,
    BATCH,
    BATCH_AT,
    BATCHES,
    BATCHES_S,
    BUSY_S,
    CPU_S,
    DONE,
    DROPPED,
    FANOUT,
    FREE_LEFT,
    HEAP,
    HOST,
    IN_BATCH,
    LENGTH,
    NEXT_ARRIVAL,
    NONE,
    NOW,
    OPEN,
    OPERATOR,
    OVERHEAD_S,
    PAUSED,
    PHASE,
    REPLICAS,
    SERVICE_S,
    SLOT_DONE,
    SLOW,
    TASK_EVENTS,
    TASK_S,
    TASKS,
    TIMEOUT_S,
    TRIGGER_S,
    State,
)

RESTING, AWAITED, RUNNING = range(3)  # phases of an operator


@dataclass(frozen=True, slots=True)
class BatchCosts:
    """What a micro-batch costs beside its events: ``overhead_s`` per batch (or per operator), ``task_s`` for a task with events.

    The defaults are of the order of a small local Spark with Python tasks; ``foretide.sim.calibrate`` finds those of a recorded run.
    """

    trigger_s: float = 1.0
    overhead_s: float = 0.3
    task_s: float = 0.02
    overheads_s: Mapping[str, float] = field(default_factory=dict)

    def write(self, state: State, app: App) -> None:
        for i, name in enumerate(app.topology.names):
            state.op_f[i, TRIGGER_S] = self.trigger_s
            state.op_f[i, OVERHEAD_S] = self.overheads_s.get(name, self.overhead_s)
            state.op_f[i, TASK_S] = self.task_s


@inner
def _await_trigger(s: Any, op: int, now: float) -> None:
    """Events wait at an operator that rests: it starts at its next trigger."""
    trigger = s.op_f[op, TRIGGER_S]
    at = now if trigger <= 0.0 else np.ceil(now / trigger - 1e-9) * trigger
    s.op_i[op, PHASE] = AWAITED
    heap_push(s, max(now, at), s.op_i[op, BASE])


@inner
def _start_batch(s: Any, op: int, now: float) -> None:
    """Take what waits, draw every event's service time on its task, and set the end of the batch."""
    base, tasks = s.op_i[op, BASE], s.op_i[op, REPLICAS]
    for slot in range(base, base + tasks):
        s.slot_f[slot, SERVICE_S] = 0.0
        s.slot_f[slot, TASK_EVENTS] = 0.0
    first, last, count = NONE, NONE, 0
    while s.slot_i[base, LENGTH] > 0:
        job = pop(s, base)
        if now - s.job_entered[job] > s.clock[TIMEOUT_S]:
            s.w_op[op, DROPPED] += 1.0
            free_job(s, job)
            continue
        slot = base + choose(s, op, s.job_value[job], now)
        drawn = draw_service(s, op, s.job_value[job])
        s.slot_f[slot, SERVICE_S] += drawn
        served(s, op, slot, s.job_value[job], (drawn, now + s.slot_f[slot, SERVICE_S]))
        s.slot_f[slot, TASK_EVENTS] += 1.0
        s.job_next[job] = NONE
        if first == NONE:
            first = job
        else:
            s.job_next[last] = job
        last = job
        count += 1
    s.op_i[op, BATCH] = first
    s.op_i[op, IN_BATCH] = count
    s.op_i[op, TASKS] = tasks
    s.op_f[op, BATCH_AT] = now
    if count == 0:
        s.op_i[op, PHASE] = RESTING
        return
    s.op_i[op, PHASE] = RUNNING
    heap_push(s, now + s.op_f[op, OVERHEAD_S] + _longest_task_s(s, op), base)


@inner
def _longest_task_s(s: Any, op: int) -> Any:
    """Seconds of the slowest task; a host with more running tasks than cores slows those that begin on it."""
    base, longest = s.op_i[op, BASE], 0.0
    for slot in range(base, base + s.op_i[op, TASKS]):
        if s.slot_f[slot, TASK_EVENTS] == 0.0:
            continue
        s.slot_f[slot, SLOW] = 1.0
        host = s.slot_i[slot, HOST]
        if host >= 0:
            s.host_busy[host] += 1
            s.slot_f[slot, SLOW] = max(1.0, s.host_busy[host] / s.host_cores[host])
        longest = max(longest, s.op_f[op, TASK_S] + s.slot_f[slot, SERVICE_S] * s.slot_f[slot, SLOW])
    return longest


@inner
def _close_batch(s: Any, op: int, now: float) -> None:
    """All events of a batch are sent on: count its tasks, and begin or await the next batch when events wait."""
    base = s.op_i[op, BASE]
    for slot in range(base, base + s.op_i[op, TASKS]):
        if s.slot_f[slot, TASK_EVENTS] > 0.0:
            s.w_slot[slot, BUSY_S] += s.slot_f[slot, SERVICE_S] * s.slot_f[slot, SLOW]
            s.w_slot[slot, CPU_S] += s.slot_f[slot, SERVICE_S]
            s.w_slot[slot, SLOT_DONE] += s.slot_f[slot, TASK_EVENTS]
            s.slot_f[slot, TASK_EVENTS] = 0.0
            if s.slot_i[slot, HOST] >= 0:
                s.host_busy[s.slot_i[slot, HOST]] -= 1
    s.w_op[op, BATCHES] += 1.0
    s.w_op[op, BATCHES_S] += now - s.op_f[op, BATCH_AT]
    s.op_i[op, PHASE] = RESTING
    if s.slot_i[base, LENGTH] > 0 and not s.op_i[op, PAUSED]:
        trigger = s.op_f[op, TRIGGER_S]
        overran = now - s.op_f[op, BATCH_AT] >= trigger
        if overran:
            s.op_i[op, PHASE] = AWAITED
            heap_push(s, now, base)
        else:
            _await_trigger(s, op, now)


@entry
def run(s: Any, until: float) -> int:
    """Live on to just before ``until``; says early that the pool of jobs or the buffer of latencies is full: make room and call again."""
    if s.clock[NEXT_ARRIVAL] < 0.0:
        schedule_arrival(s, 0.0)
    while True:
        if s.count[FREE_LEFT] < s.count[FANOUT]:
            return POOL_FULL
        if s.count[DONE] == s.done.size:
            return DONE_FULL
        due = s.heap_time[0] if s.count[HEAP] > 0 else np.inf
        arrival = s.clock[NEXT_ARRIVAL]
        ending = s.count[OPEN]
        job, now = NONE, s.clock[NOW]
        if ending != NONE:  # one event after another of the batch that has just ended
            done = s.op_i[ending, BATCH]
            if done == NONE:
                s.count[OPEN] = NONE
                _close_batch(s, ending, now)
                continue
            s.op_i[ending, BATCH] = s.job_next[done]
            s.op_i[ending, IN_BATCH] -= 1
            note_done(s, ending, done, now)
            job = emit(s, ending, done, now, NONE)
            free_job(s, done)
        elif min(due, arrival) >= until:
            s.clock[NOW] = until
            return FINISHED
        elif arrival <= due:  # an event of the trigger's very instant is part of its batch
            now = arrival
            job = new_arrival(s, now)
            schedule_arrival(s, now)
        else:
            now = due
            s.clock[NOW] = now
            op = s.slot_i[heap_pop(s), OPERATOR]
            if s.op_i[op, PHASE] == RUNNING:
                s.count[OPEN] = op
            elif s.op_i[op, PAUSED]:
                s.op_i[op, PHASE] = RESTING
            else:
                _start_batch(s, op, now)
        while job != NONE:
            following = s.job_next[job]
            op = int(s.job_arrived[job])
            note_arrival(s, op, job, now)
            push(s, s.op_i[op, BASE], job)
            if s.op_i[op, PHASE] == RESTING and not s.op_i[op, PAUSED]:
                _await_trigger(s, op, now)
            job = following


@entry
def resume(s: Any, op: int) -> None:
    """Serve again: what has come meanwhile starts at once."""
    s.op_i[op, PAUSED] = 0
    if s.op_i[op, PHASE] == RESTING and s.slot_i[s.op_i[op, BASE], LENGTH] > 0:
        s.op_i[op, PHASE] = AWAITED
        heap_push(s, s.clock[NOW], s.op_i[op, BASE])


@entry
def resize(s: Any, op: int, replicas: int) -> None:
    """Tasks of the next batch; one that runs keeps its own."""
    regroup(s, op, replicas)
    s.op_i[op, REPLICAS] = replicas
