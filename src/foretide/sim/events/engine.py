"""The event engine: every event, every replica, every queue, in order of time. Compiled;
deterministic by seed.

Owns what happens inside an operator: an event joins the queue that the grouping chose (or the
operator's shared queue), is dropped when it is older than the timeout as its turn comes, is served
for a drawn time, and is sent on along the edges. Windows, plans and Spark are not its concern.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretide.jit import lean_entry as entry
from foretide.jit import lean_inner as inner
from foretide.sim.codes import SHARED
from foretide.sim.events.agenda import due_of, set_due
from foretide.sim.events.arrivals import new_arrival, schedule_arrival
from foretide.sim.events.grouping import choose, regroup, served
from foretide.sim.events.jobs import (
    draw_service,
    emit,
    free_job,
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
    TIMEOUT_S,
)

FINISHED, POOL_FULL, DONE_FULL = range(3)


@inner
def _dropped(s: Any, op: int, slot: int, job: int, now: float) -> bool:
    """Whether a job is too old as its turn comes; then it is gone."""
    if now - s.jobs[job].entered <= s.clock[TIMEOUT_S]:
        return False
    s.w_ops[op].dropped += 1.0
    served(s, op, slot, s.jobs[job].value, (0.0, now))
    free_job(s, job, now)
    return True


@inner
def _begin(s: Any, op: int, slot: int, job: int, now: float) -> Any:
    """Serve a job on an idle slot; the instant when it will be done.

    A host with more busy replicas than cores slows the service that begins on it by busy / cores;
    services already begun keep the pace they were begun with, which is exact while the host stays
    as busy.
    """
    drawn = draw_service(s, op, s.jobs[job].value)
    slow = 1.0
    host = s.slots[slot].host
    if host != NONE:
        s.host_busy[host] += 1
        slow = max(1.0, s.host_busy[host] / s.host_cores[host])
    s.slots[slot].job = job
    s.slots[slot].busy_since = now
    s.slots[slot].service_s = drawn
    s.slots[slot].slow = slow
    return now + drawn * slow


@inner
def _serve_next(s: Any, op: int, slot: int, now: float) -> None:
    """An idle, active slot takes the next job that is not too old; when there is none, or the
    operator is paused, it idles.
    """
    shared = s.ops[op].grouping == SHARED
    queue = s.ops[op].base if shared else slot
    while s.slots[queue].length > 0 and not s.ops[op].paused:
        job = pop(s, queue)
        if not _dropped(s, op, slot, job, now):
            set_due(s, slot, _begin(s, op, slot, job, now))
            return
    if shared:
        _put_idle(s, op, slot)
    set_due(s, slot, np.inf)


@inner
def _put_idle(s: Any, op: int, slot: int) -> None:
    """To the end of the ring of idle replicas that serve a shared queue."""
    end, most = s.ops[op].cursor + s.ops[op].idle, s.ops[op].most
    s.slots[s.ops[op].base + (end - most if end >= most else end)].ring = slot
    s.ops[op].idle += 1


@inner
def _take_idle(s: Any, op: int) -> Any:
    """The replica that has been idle longest, so that work is spread over the replicas."""
    first = s.ops[op].cursor
    s.ops[op].cursor = first + 1 if first + 1 < s.ops[op].most else 0
    s.ops[op].idle -= 1
    return s.slots[s.ops[op].base + first].ring


@inner
def _deliver(s: Any, op: int, job: int, now: float) -> None:
    """An event comes to an operator: an idle replica, before which nothing waits, serves it at
    once; else it joins a queue.
    """
    note_arrival(s, op, job, now)
    shared = s.ops[op].grouping == SHARED
    queue = s.ops[op].base if shared else s.ops[op].base + choose(s, op, s.jobs[job].value, now)
    idle = s.ops[op].idle > 0 if shared else s.slots[queue].job == NONE
    if not idle or s.ops[op].paused:
        push(s, queue, job)
    elif not _dropped(s, op, queue, job, now):
        slot = _take_idle(s, op) if shared else queue
        set_due(s, slot, _begin(s, op, slot, job, now))


@inner
def _finish(s: Any, slot: Any, now: float) -> Any:
    """A replica is done with its event and takes the next one; the list of jobs that the event is
    sent on as.
    """
    job, op = s.slots[slot].job, s.slots[slot].operator
    busy = max(0.0, now - s.slots[slot].busy_since)
    s.w_slots[slot].busy_s += busy
    s.w_slots[slot].cpu_s += busy / s.slots[slot].slow
    s.w_slots[slot].done += 1.0
    s.slots[slot].job = NONE
    if s.slots[slot].host != NONE:
        s.host_busy[s.slots[slot].host] -= 1
    note_done(s, op, job, now)
    served(s, op, slot, s.jobs[job].value, (s.slots[slot].service_s * s.slots[slot].slow, now))
    if slot - s.ops[op].base < s.ops[op].replicas:
        _serve_next(s, op, slot, now)
    else:
        set_due(s, slot, np.inf)
    return emit(s, op, job, now)


@entry
def run(s: Any, until: float) -> int:
    """Advance to ``until``: services that end at that very instant are included, arrivals are not.

    Returns early when the pool of jobs or the buffer of latencies is full: make room and call
    again.
    """
    if s.clock[NEXT_ARRIVAL] < 0.0:
        schedule_arrival(s, 0.0)
    while True:
        if s.count[FREE_LEFT] < s.count[FANOUT]:
            return POOL_FULL
        if s.count[DONE] == s.done.size:
            return DONE_FULL
        departure = s.due_time[1]
        arrival = s.clock[NEXT_ARRIVAL]
        if departure > until and arrival >= until:
            s.clock[NOW] = until
            return FINISHED
        now = min(departure, arrival)
        if departure <= arrival:
            job = _finish(s, np.uint32(s.due_slot[1]), now)
        else:
            job = new_arrival(s, now)
            schedule_arrival(s, now)
        while job != NONE:
            following = s.jobs[job].next
            _deliver(s, s.jobs[job].to, job, now)
            job = following


@entry
def close_window(s: Any, now: float) -> None:
    """Count the busy time of services still under way up to ``now``; they go on counting from
    there.
    """
    for slot in range(s.slots.size):
        if s.slots[slot].job != NONE:
            busy = max(0.0, now - s.slots[slot].busy_since)
            s.w_slots[slot].busy_s += busy
            s.w_slots[slot].cpu_s += busy / s.slots[slot].slow
            s.slots[slot].busy_since = max(now, s.slots[slot].busy_since)


@inner
def _take_all(s: Any, op: int, slots: int) -> int:
    """All waiting jobs of an operator's first ``slots`` slots as one list in the order of arrival;
    the queues are then empty.
    """
    base, head, tail = s.ops[op].base, NONE, NONE
    while True:
        oldest = NONE
        for slot in range(base, base + slots):
            if s.slots[slot].length > 0 and (
                oldest == NONE
                or s.jobs[s.slots[slot].head].arrived < s.jobs[s.slots[oldest].head].arrived
            ):
                oldest = slot
        if oldest == NONE:
            return head
        job = pop(s, oldest)
        s.jobs[job].next = NONE
        if tail == NONE:
            head = job
        else:
            s.jobs[tail].next = job
        tail = job


@entry
def resize(s: Any, op: int, replicas: int) -> None:
    """Change the active replicas: waiting events are distributed again in order of arrival; a
    service under way is finished.
    """
    job = _take_all(s, op, s.ops[op].replicas)
    regroup(s, op, replicas)
    s.ops[op].replicas = replicas
    s.ops[op].cursor = 0
    while job != NONE:
        following = s.jobs[job].next
        replica = (
            0 if s.ops[op].grouping == SHARED else choose(s, op, s.jobs[job].value, s.clock[NOW])
        )
        push(s, s.ops[op].base + replica, job)
        job = following
    _wake(s, op, s.clock[NOW])


@inner
def _wake(s: Any, op: int, now: float) -> None:
    """Every idle replica takes what waits, or rests."""
    s.ops[op].idle = 0
    for slot in range(s.ops[op].base, s.ops[op].base + s.ops[op].replicas):
        if s.slots[slot].job == NONE:
            _serve_next(s, op, slot, now)


@entry
def pause(s: Any, op: int, seconds: float) -> None:
    """Pause: services under way take ``seconds`` longer without being busy, and none begins
    until ``resume``.
    """
    now = s.clock[NOW]
    s.ops[op].paused = 1
    for slot in range(s.ops[op].base, s.ops[op].base + s.ops[op].most):
        set_due(s, slot, due_of(s, slot) + seconds)
        if (
            s.slots[slot].job == NONE
        ):  # idle, or the end of a micro-batch, whose busy time is known only then
            continue
        if s.slots[slot].busy_since <= now:
            s.w_slots[slot].busy_s += now - s.slots[slot].busy_since
            s.w_slots[slot].cpu_s += (now - s.slots[slot].busy_since) / s.slots[slot].slow
            s.slots[slot].busy_since = now + seconds
        else:
            s.slots[slot].busy_since += seconds


@entry
def resume(s: Any, op: int) -> None:
    """Serve again."""
    s.ops[op].paused = 0
    _wake(s, op, s.clock[NOW])
