"""The event engine: every event, every replica, every queue, in the order of time. Compiled; deterministic by seed.

Owns what happens inside an operator: an event joins the queue that the grouping chose (or the operator's shared queue), is dropped when it
is older than the timeout as its turn comes, is served for a drawn time, and is sent on along the edges. It knows nothing of windows,
plans or Spark.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretide.jit import lean_entry as entry
from foretide.jit import lean_inner as inner
from foretide.sim.arrivals import new_arrival, schedule_arrival
from foretide.sim.grouping import SHARED, choose, regroup, served
from foretide.sim.heap import heap_pop, heap_push, sift_down
from foretide.sim.jobs import draw_service, emit, free_job, note_arrival, note_done, pop, push
from foretide.sim.state import (
    BASE,
    BUSY_S,
    BUSY_SINCE,
    CPU_S,
    CURSOR,
    DONE,
    DROPPED,
    FANOUT,
    FREE_LEFT,
    GROUPING,
    HEAD,
    HEAP,
    HOST,
    IDLE,
    JOB,
    LENGTH,
    NEXT_ARRIVAL,
    NONE,
    NOW,
    OPERATOR,
    PAUSED,
    REPLICAS,
    SERVICE_S,
    SLOT_DONE,
    SLOW,
    TIMEOUT_S,
)

FINISHED, POOL_FULL, DONE_FULL = range(3)


@inner
def _start(s: Any, op: int, slot: int, job: int, now: float) -> bool:
    """Begin to serve a job on an idle slot; False when it was too old and was dropped instead.

    A host with more busy replicas than cores slows the service that begins on it by busy / cores; services already begun keep the pace they
    were begun with, which is exact while the host stays as busy.
    """
    if now - s.job_entered[job] > s.clock[TIMEOUT_S]:
        s.w_op[op, DROPPED] += 1.0
        served(s, op, slot, s.job_value[job], (0.0, now))
        free_job(s, job)
        return False
    drawn = draw_service(s, op, s.job_value[job])
    slow = 1.0
    host = s.slot_i[slot, HOST]
    if host >= 0:
        s.host_busy[host] += 1
        slow = max(1.0, s.host_busy[host] / s.host_cores[host])
    s.slot_i[slot, JOB] = job
    s.slot_f[slot, BUSY_SINCE] = now
    s.slot_f[slot, SERVICE_S] = drawn
    s.slot_f[slot, SLOW] = slow
    if slot - s.op_i[op, BASE] < s.op_i[op, REPLICAS]:
        s.op_i[op, IDLE] -= 1
    heap_push(s, now + drawn * slow, slot)
    return True


@inner
def _queue_of(s: Any, op: int, slot: int) -> int:
    return s.op_i[op, BASE] if s.op_i[op, GROUPING] == SHARED else slot


@inner
def _serve_next(s: Any, op: int, slot: int, now: float) -> None:
    """An idle, active slot takes the next job that is not too old."""
    queue = _queue_of(s, op, slot)
    while s.slot_i[queue, LENGTH] > 0 and not _start(s, op, slot, pop(s, queue), now):
        pass


@inner
def _idle_slot(s: Any, op: int) -> Any:
    """An idle slot of an operator that has one; the search goes round, so that work is spread over the replicas."""
    base, replicas = s.op_i[op, BASE], s.op_i[op, REPLICAS]
    i = s.op_i[op, CURSOR]
    while i >= replicas or s.slot_i[base + i, JOB] != NONE:
        i = 0 if i >= replicas else i + 1
    s.op_i[op, CURSOR] = i + 1
    return base + i


@inner
def _deliver(s: Any, op: int, job: int, now: float) -> None:
    """An event comes to an operator: it joins a queue, and an idle replica of that queue takes the next."""
    note_arrival(s, op, job, now)
    if s.op_i[op, GROUPING] == SHARED:
        queue = s.op_i[op, BASE]
        slot = _idle_slot(s, op) if s.op_i[op, IDLE] > 0 else NONE
    else:
        queue = slot = s.op_i[op, BASE] + choose(s, op, s.job_value[job], now)
    push(s, queue, job)
    if slot != NONE and s.slot_i[slot, JOB] == NONE and not s.op_i[op, PAUSED]:
        _serve_next(s, op, slot, now)


@inner
def _finish(s: Any, slot: int, now: float) -> Any:
    """A replica is done with its event and takes the next one; the list of jobs that the event is sent on as."""
    job, op = s.slot_i[slot, JOB], s.slot_i[slot, OPERATOR]
    busy = max(0.0, now - s.slot_f[slot, BUSY_SINCE])
    s.w_slot[slot, BUSY_S] += busy
    s.w_slot[slot, CPU_S] += busy / s.slot_f[slot, SLOW]
    s.w_slot[slot, SLOT_DONE] += 1.0
    s.slot_i[slot, JOB] = NONE
    if s.slot_i[slot, HOST] >= 0:
        s.host_busy[s.slot_i[slot, HOST]] -= 1
    note_done(s, op, job, now)
    served(s, op, slot, s.job_value[job], (s.slot_f[slot, SERVICE_S] * s.slot_f[slot, SLOW], now))
    if slot - s.op_i[op, BASE] < s.op_i[op, REPLICAS]:
        s.op_i[op, IDLE] += 1
        if not s.op_i[op, PAUSED]:
            _serve_next(s, op, slot, now)
    sent = emit(s, op, job, now, NONE)
    free_job(s, job)
    return sent


@entry
def run(s: Any, until: float) -> int:
    """Live on to ``until``: what is done at that very instant is included, what comes then is not.

    Says early that the pool of jobs or the buffer of latencies is full: make room and call again.
    """
    if s.clock[NEXT_ARRIVAL] < 0.0:
        schedule_arrival(s, 0.0)
    while True:
        if s.count[FREE_LEFT] < s.count[FANOUT]:
            return POOL_FULL
        if s.count[DONE] == s.done.size:
            return DONE_FULL
        departure = s.heap_time[0] if s.count[HEAP] > 0 else np.inf
        arrival = s.clock[NEXT_ARRIVAL]
        if departure > until and arrival >= until:
            s.clock[NOW] = until
            return FINISHED
        now = min(departure, arrival)
        if departure <= arrival:
            job = _finish(s, heap_pop(s), now)
        else:
            job = new_arrival(s, now)
            schedule_arrival(s, now)
        while job != NONE:
            following = s.job_next[job]
            _deliver(s, int(s.job_arrived[job]), job, now)
            job = following


@entry
def close_window(s: Any, now: float) -> None:
    """Count the busy time of services still under way up to ``now``; they go on counting from there."""
    for slot in range(s.slot_i.shape[0]):
        if s.slot_i[slot, JOB] != NONE:
            busy = max(0.0, now - s.slot_f[slot, BUSY_SINCE])
            s.w_slot[slot, BUSY_S] += busy
            s.w_slot[slot, CPU_S] += busy / s.slot_f[slot, SLOW]
            s.slot_f[slot, BUSY_SINCE] = max(now, s.slot_f[slot, BUSY_SINCE])


@inner
def _take_all(s: Any, op: int, slots: int) -> int:
    """All waiting jobs of an operator's first ``slots`` slots as one list in the order of arrival; the queues are then empty."""
    base, head, tail = s.op_i[op, BASE], NONE, NONE
    while True:
        oldest = NONE
        for slot in range(base, base + slots):
            if s.slot_i[slot, LENGTH] > 0 and (
                oldest == NONE or s.job_arrived[s.slot_i[slot, HEAD]] < s.job_arrived[s.slot_i[oldest, HEAD]]
            ):
                oldest = slot
        if oldest == NONE:
            return head
        job = pop(s, oldest)
        s.job_next[job] = NONE
        if tail == NONE:
            head = job
        else:
            s.job_next[tail] = job
        tail = job


@entry
def resize(s: Any, op: int, replicas: int) -> None:
    """Change the active replicas: waiting events are dealt anew in the order they came; a service under way is finished."""
    job = _take_all(s, op, s.op_i[op, REPLICAS])
    regroup(s, op, replicas)
    s.op_i[op, REPLICAS] = replicas
    s.op_i[op, CURSOR] = 0
    s.op_i[op, IDLE] = 0
    for slot in range(s.op_i[op, BASE], s.op_i[op, BASE] + replicas):
        s.op_i[op, IDLE] += s.slot_i[slot, JOB] == NONE
    while job != NONE:
        following = s.job_next[job]
        chosen = 0 if s.op_i[op, GROUPING] == SHARED else choose(s, op, s.job_value[job], s.clock[NOW])
        push(s, s.op_i[op, BASE] + chosen, job)
        job = following
    if not s.op_i[op, PAUSED]:
        _wake(s, op, s.clock[NOW])


@inner
def _wake(s: Any, op: int, now: float) -> None:
    base = s.op_i[op, BASE]
    for slot in range(base, base + s.op_i[op, REPLICAS]):
        if s.slot_i[slot, JOB] == NONE:
            _serve_next(s, op, slot, now)


@entry
def pause(s: Any, op: int, seconds: float) -> None:
    """Stand still: services under way take ``seconds`` longer without being busy, and none begins until ``resume``."""
    now = s.clock[NOW]
    s.op_i[op, PAUSED] = 1
    size = s.count[HEAP]
    for i in range(size):
        slot = s.heap_slot[i]
        if s.slot_i[slot, OPERATOR] == op:
            s.heap_time[i] += seconds
            if s.slot_i[slot, JOB] == NONE:  # the end of a micro-batch, whose busy time is known only then
                continue
            if s.slot_f[slot, BUSY_SINCE] <= now:
                s.w_slot[slot, BUSY_S] += now - s.slot_f[slot, BUSY_SINCE]
                s.w_slot[slot, CPU_S] += (now - s.slot_f[slot, BUSY_SINCE]) / s.slot_f[slot, SLOW]
                s.slot_f[slot, BUSY_SINCE] = now + seconds
            else:
                s.slot_f[slot, BUSY_SINCE] += seconds
    for i in range(size // 2 - 1, -1, -1):
        sift_down(s, i, size, s.heap_time[i], s.heap_slot[i])


@entry
def resume(s: Any, op: int) -> None:
    """Serve again."""
    s.op_i[op, PAUSED] = 0
    _wake(s, op, s.clock[NOW])
