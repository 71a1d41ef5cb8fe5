"""The micro-batch engine: operators as Spark runs them. Compiled; deterministic by seed.

Every operator is a query of its own. At its trigger it takes all that waits and distributes it
over ``replicas`` tasks by the grouping; the batch costs a fixed overhead and then lasts as long
as its slowest task; only when it ends are its events processed, its outputs delivered and its busy
time known. Triggers are multiples of the interval; a batch that ran past the next one is followed
at once by another, and no batch runs without events. An operator behind an edge looks more often
than the trigger, but rests a while after each start, and takes no more than its replicas work off
in two triggers, as ``foretide.spark`` does it: a chain's latency is then not a multiple of the
trigger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from foretide.apps import App
from foretide.clock import LEAST_EVENTS, PAUSE, POLL_S, span_s
from foretide.jit import lean_entry as entry
from foretide.jit import lean_inner as inner
from foretide.sim.events.agenda import set_due
from foretide.sim.events.arrivals import draw_value, new_arrival, schedule_arrival
from foretide.sim.events.engine import DONE_FULL, FINISHED, POOL_FULL
from foretide.sim.events.grouping import choose, regroup, served
from foretide.sim.events.jobs import (
    draw_service,
    emit,
    free_job,
    new_job,
    note_arrival,
    note_done,
    pop,
    push,
)
from foretide.sim.events.state import (
    DONE,
    FANOUT,
    FREE_LEFT,
    NEXT_ARRIVAL,
    NONE,
    NOW,
    OPEN,
    TIMEOUT_S,
    EngineState,
)

RESTING, AWAITED, RUNNING = range(3)  # phases of an operator


@dataclass(frozen=True, slots=True)
class BatchCosts:
    """What a micro-batch costs beside its events: ``overhead_s`` per batch (or per operator),
    ``task_s`` for a task with events, ``commit_s`` after its delivery, until the next may start.

    Operators that read a source start every ``trigger_s``. The others look every ``poll_s`` (0:
    every trigger) and start at most every ``pause`` triggers. The defaults are of the order of a
    small local Spark with Python tasks; ``foretide.sim.calibrate`` finds those of a recorded run.
    """

    trigger_s: float = 1.0
    overhead_s: float = 0.3
    task_s: float = 0.02
    overheads_s: Mapping[str, float] = field(default_factory=dict)
    poll_s: float = POLL_S
    pause: float = PAUSE
    commit_s: float = 0.0

    def write(self, state: EngineState, app: App) -> None:
        for i, name in enumerate(app.topology.names):
            behind = name not in app.topology.sources and self.poll_s > 0.0
            state.ops["trigger_s"][i] = (
                min(self.poll_s, self.trigger_s) if behind else self.trigger_s
            )
            state.ops["pause_s"][i] = self.pause * self.trigger_s if behind else 0.0
            state.ops["batch_at"][i] = state.ops["ready_at"][i] = -np.inf
            state.ops["overhead_s"][i] = self.overheads_s.get(name, self.overhead_s)
            state.ops["task_s"][i] = self.task_s
            state.ops["commit_s"][i] = self.commit_s
            state.ops["limit_s"][i] = (
                span_s(self.trigger_s, state.ops["overhead_s"][i]) if behind else np.inf
            )


@inner
def _await_trigger(s: Any, op: int, now: float) -> None:
    """Events wait at an operator that rests: it starts at its next trigger."""
    trigger = s.ops[op].trigger_s
    ready = max(now, s.ops[op].ready_at, s.ops[op].batch_at + s.ops[op].pause_s)
    at = ready if trigger <= 0.0 else np.ceil(ready / trigger - 1e-9) * trigger
    s.ops[op].phase = AWAITED
    set_due(s, s.ops[op].base, max(ready, at))


@inner
def _start_batch(s: Any, op: int, now: float) -> None:
    """Take what waits, draw each event's service time on its task, and set the batch's end."""
    base, tasks = s.ops[op].base, s.ops[op].replicas
    for slot in range(base, base + tasks):
        s.slots[slot].service_s = 0.0
        s.slots[slot].task_events = 0.0
    first, last, count = NONE, NONE, 0
    most = max(LEAST_EVENTS, s.ops[op].limit_s * tasks / max(s.ops[op].mean_s, 1e-9))
    while s.slots[base].length > 0 and count < most:
        job = pop(s, base)
        if now - s.jobs[job].entered > s.clock[TIMEOUT_S]:
            s.w_ops[op].dropped += 1.0
            free_job(s, job, now)
            continue
        slot = base + choose(s, op, s.jobs[job].value, now)
        drawn = draw_service(s, op, s.jobs[job].value)
        s.slots[slot].service_s += drawn
        served(s, op, slot, s.jobs[job].value, (drawn, now + s.slots[slot].service_s))
        s.slots[slot].task_events += 1.0
        s.jobs[job].next = NONE
        if first == NONE:
            first = job
        else:
            s.jobs[last].next = job
        last = job
        count += 1
    s.ops[op].batch = first
    s.ops[op].in_batch = count
    s.ops[op].tasks = tasks
    s.ops[op].batch_at = now
    if count == 0:
        s.ops[op].phase = RESTING
        return
    s.ops[op].phase = RUNNING
    set_due(s, base, now + s.ops[op].overhead_s + _longest_task_s(s, op))


@inner
def _longest_task_s(s: Any, op: int) -> Any:
    """Seconds of the slowest task; a host with more running tasks than cores slows those that begin
    on it.
    """
    base, longest = s.ops[op].base, 0.0
    for slot in range(base, base + s.ops[op].tasks):
        if s.slots[slot].task_events == 0.0:
            continue
        s.slots[slot].slow = 1.0
        host = s.slots[slot].host
        if host != NONE:
            s.host_busy[host] += 1
            s.slots[slot].slow = max(1.0, s.host_busy[host] / s.host_cores[host])
        longest = max(longest, s.ops[op].task_s + s.slots[slot].service_s * s.slots[slot].slow)
    return longest


@inner
def _overran(s: Any, op: int) -> Any:
    """Whether the trigger after the batch's start has passed when the next may start. Spark starts
    it at once then, not at another trigger.
    """
    trigger, began = s.ops[op].trigger_s, s.ops[op].batch_at
    following = began if trigger <= 0.0 else (np.floor(began / trigger + 1e-9) + 1.0) * trigger
    return s.ops[op].ready_at >= max(following, began + s.ops[op].pause_s)


@inner
def _close_batch(s: Any, op: int, now: float) -> None:
    """All events of a batch are sent on: count its tasks, and begin or await the next batch when
    events wait.
    """
    base = s.ops[op].base
    for slot in range(base, base + s.ops[op].tasks):
        if s.slots[slot].task_events > 0.0:
            s.w_slots[slot].busy_s += s.slots[slot].service_s * s.slots[slot].slow
            s.w_slots[slot].cpu_s += s.slots[slot].service_s
            s.w_slots[slot].done += s.slots[slot].task_events
            s.slots[slot].task_events = 0.0
            if s.slots[slot].host != NONE:
                s.host_busy[s.slots[slot].host] -= 1
    s.w_ops[op].batches += 1.0
    s.w_ops[op].batches_s += now - s.ops[op].batch_at
    s.ops[op].phase = RESTING
    s.ops[op].ready_at = now + s.ops[op].commit_s
    if s.slots[base].length > 0 and not s.ops[op].paused:
        if _overran(s, op):
            s.ops[op].phase = AWAITED
            set_due(s, base, s.ops[op].ready_at)
        else:
            _await_trigger(s, op, now)


@inner
def _deliver(s: Any, job: int, now: float) -> None:
    """A chain of jobs into the queues of their operators, which may await a trigger for them."""
    while job != NONE:
        following = s.jobs[job].next
        op = s.jobs[job].to
        note_arrival(s, op, job, now)
        push(s, s.ops[op].base, job)
        if s.ops[op].phase == RESTING and not s.ops[op].paused:
            _await_trigger(s, op, now)
        job = following


@inner
def _take_due(s: Any, now: float) -> None:
    """The next slot is due: its operator's batch ends, or starts."""
    s.clock[NOW] = now
    slot = s.due_slot[1]
    set_due(s, slot, np.inf)
    op = s.slots[slot].operator
    if s.ops[op].phase == RUNNING:
        s.count[OPEN] = op
    elif s.ops[op].paused:
        s.ops[op].phase = RESTING
    else:
        _start_batch(s, op, now)


@entry
def run(s: Any, until: float) -> int:
    """Advance to just before ``until``. Returns early when the pool of jobs or the buffer of
    latencies is full: make room and call again.
    """
    if s.clock[NEXT_ARRIVAL] < 0.0:
        schedule_arrival(s, 0.0)
    while True:
        if s.count[FREE_LEFT] < s.count[FANOUT]:
            return POOL_FULL
        if s.count[DONE] == s.done.size:
            return DONE_FULL
        due = s.due_time[1]
        arrival = s.clock[NEXT_ARRIVAL]
        ending = s.count[OPEN]
        job, now = NONE, s.clock[NOW]
        if ending != NONE:  # one event after another of the batch that has just ended
            done = s.ops[ending].batch
            if done == NONE:
                s.count[OPEN] = NONE
                _close_batch(s, ending, now)
                continue
            s.ops[ending].batch = s.jobs[done].next
            s.ops[ending].in_batch -= 1
            note_done(s, ending, done, now)
            job = emit(s, ending, done, now)
        elif min(due, arrival) >= until:
            s.clock[NOW] = until
            return FINISHED
        elif arrival <= due:  # an event of the trigger's very instant is part of its batch
            now = arrival
            job = new_arrival(s, now)
            schedule_arrival(s, now)
        else:
            now = due
            _take_due(s, now)
        _deliver(s, job, now)


@entry
def put(s: Any, op: int, events: int, rate: float) -> None:
    """Let ``events`` wait at an operator at time 0; they came at ``rate`` events/s. The pool of
    jobs has room for them.
    """
    for i in range(events):
        job = new_job(s, -(events - i) / rate, draw_value(s))
        s.jobs[job].arrived = 0.0
        s.jobs[job].to = op
        push(s, s.ops[op].base, job)
    if events > 0 and s.ops[op].phase == RESTING:
        _await_trigger(s, op, 0.0)


@entry
def resume(s: Any, op: int) -> None:
    """Serve again: what has come meanwhile starts at once."""
    s.ops[op].paused = 0
    if s.ops[op].phase == RESTING and s.slots[s.ops[op].base].length > 0:
        s.ops[op].phase = AWAITED
        set_due(s, s.ops[op].base, s.clock[NOW])


@entry
def resize(s: Any, op: int, replicas: int) -> None:
    """Tasks of the next batch; one that runs keeps its own."""
    regroup(s, op, replicas)
    s.ops[op].replicas = replicas
