"""The engines' state: flat arrays in one tuple, so that compiled code holds it whole and Python reads it between two calls.

A *slot* is a place for one replica; operator ``o`` owns slots ``op_i[o, BASE] .. + op_i[o, MOST]`` and the first ``REPLICAS`` of them
are active. A *job* is one event at one operator; jobs live in a pool and queue as linked lists. Columns of the two-dimensional arrays
are named by the constants below.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from foretide.apps import App
from foretide.balance.osg_machine import new_machine
from foretide.jit import lean_inner as inner
from foretide.load import Load
from foretide.model import Array
from foretide.sim.rng import streams

FIXED, EXPONENTIAL, UNIFORM, BY_VALUE = range(4)  # service laws
POISSON, BATCHED = range(2)  # arrivals
LAWS = {"fixed": FIXED, "exponential": EXPONENTIAL, "uniform": UNIFORM, "by-value": BY_VALUE}

# op_i: whole numbers of an operator; the last ones belong to its micro-batch
BASE, MOST, REPLICAS, GROUPING, CURSOR, LAW, EDGES, EDGES_END, SPLITS, PAUSED, IDLE, PHASE, IN_BATCH, BATCH, TASKS, OP_I = range(16)
# op_f: seconds of an operator; the last ones belong to its micro-batch
MEAN_S, SPREAD, LAST_ARRIVAL, TRIGGER_S, OVERHEAD_S, TASK_S, BATCH_AT, OP_F = range(8)
# slot_i: queue and work of a slot
HEAD, TAIL, LENGTH, JOB, OPERATOR, HOST, SLOT_I = range(7)
# slot_f: since when busy (within the window), the service time drawn, the slow-down it was started with, events of a task
BUSY_SINCE, SERVICE_S, SLOW, TASK_EVENTS, SLOT_F = range(5)
# fair: what groupings know of a slot: events given in this window, utilization, service time of the last windows, when it is free
GIVEN, UTILIZATION, EVENT_S, FREE_AT, FAIR = range(5)
# clock
NOW, NEXT_ARRIVAL, BIN_S, BATCH_S, CARRY, TIMEOUT_S, TARGET_S, WINDOW_S, CLOCK = range(9)
# count
HEAP, FREE, FREE_LEFT, DONE, BIN, BURST, ARRIVALS_LAW, FANOUT, OPEN, COUNT = range(10)
# w_op: sums over the window, per operator
ARRIVED, OFFERED, PROCESSED, DROPPED, SOJOURN, AGE, WITHIN, GAPS, GAP, GAP2, WORKS, WORK_S, WORK2, BATCHES, BATCHES_S, W_OP = range(
    16
)
# w_slot
BUSY_S, CPU_S, SLOT_DONE, W_SLOT = range(4)

OCTAVES, PARTS = 40, 64  # latency histogram: 2^-20 s to 2^20 s, every octave in 64 parts (1.6 % wide at most)
BINS = OCTAVES * PARTS
NONE = -1


class State(NamedTuple):
    """Everything an engine knows."""

    clock: Any
    count: Any
    rng: Any
    rates: Any  # offered events/s per interval of the load
    sources: Any  # operators that events come to from outside
    value_cdf: Any  # cumulated probability of each event value
    by_value_s: Any  # service time per operator and value
    job_entered: Any  # when the event entered the topology
    job_arrived: Any  # when it came to the operator where it is now
    job_value: Any
    job_next: Any
    heap_time: Any  # completions to come, a binary heap
    heap_slot: Any
    op_i: Any
    op_f: Any
    edge_to: Any
    edge_share: Any
    slot_i: Any
    slot_f: Any
    host_busy: Any  # busy replicas per host
    host_cores: Any
    w_op: Any
    w_slot: Any
    w_edge: Any
    ages: Any  # histogram of ages per operator in this window
    done: Any  # end-to-end latencies not yet fetched, seconds
    fair: Any  # what groupings know of each slot
    osg: Any  # the machines of online shuffle grouping


def new_state(app: App, load: Load, groupings: Array, target_s: float, seed: int, hosts: int, learns: bool = False) -> State:
    """An empty world before its first event; every operator starts at its minimum of replicas. ``learns``: some grouping is osg."""
    topology = app.topology
    place = {n: i for i, n in enumerate(topology.names)}
    out = [(place[p], place[c], app.share(p, c)) for p in topology.names for c in topology.successors(p)]
    slots = sum(o.max_replicas for o in topology.operators)
    ops, pool = len(place), 1024
    op_i, op_f = np.zeros((ops, OP_I), np.int64), np.zeros((ops, OP_F))
    slot_i, base = np.full((slots, SLOT_I), NONE, np.int64), 0
    table = np.zeros((ops, app.values.count))
    for i, o in enumerate(topology.operators):
        service = app.service[o.name]
        mine = [e for e, edge in enumerate(out) if edge[0] == i]
        op_i[i, [BASE, MOST, REPLICAS, IDLE]] = base, o.max_replicas, o.min_replicas, o.min_replicas
        op_i[i, [GROUPING, LAW]] = groupings[i], LAWS[service.law]
        op_i[i, [EDGES, EDGES_END]] = (mine[0], mine[-1] + 1) if mine else (0, 0)
        op_i[i, SPLITS] = o.name in app.splits
        op_f[i, [MEAN_S, SPREAD, LAST_ARRIVAL]] = service.mean_s, service.spread, np.nan
        if service.by_value_s:
            table[i] = np.resize(service.by_value_s, app.values.count)
        slot_i[base : base + o.max_replicas, OPERATOR] = i
        base += o.max_replicas
    slot_i[:, LENGTH] = 0
    clock = np.zeros(CLOCK)
    clock[WINDOW_S] = 1.0
    clock[[BIN_S, BATCH_S, TARGET_S]] = load.interval_s, min(1.0, load.interval_s), target_s
    clock[[TIMEOUT_S, NEXT_ARRIVAL]] = np.inf if app.timeout_s is None else app.timeout_s, -1.0
    count = np.zeros(COUNT, np.int64)
    copies = [sum(int(np.ceil(s)) for p, _, s in out if p == i) for i in range(ops)]
    count[[FREE_LEFT, ARRIVALS_LAW, FANOUT]] = pool, POISSON if app.arrivals == "poisson" else BATCHED, max(copies) + 1
    count[OPEN] = NONE
    entered, arrived, value, following = _pool(pool, 0)
    return State(
        clock,
        count,
        streams(seed),
        load.rates(),
        np.array([place[n] for n in topology.sources], np.int64),
        np.cumsum(app.values.probabilities()),
        table,
        entered,
        arrived,
        value,
        following,
        np.zeros(slots + 1),
        np.zeros(slots + 1, np.int64),
        op_i,
        op_f,
        np.array([c for _, c, _ in out] or [0], np.int64),
        np.array([s for *_, s in out] or [0.0]),
        slot_i,
        np.zeros((slots, SLOT_F)),
        np.zeros(hosts, np.int64),
        np.full(hosts, app.host_cores),
        np.zeros((ops, W_OP)),
        np.zeros((slots, W_SLOT)),
        np.zeros(max(1, len(out))),
        np.zeros((ops, BINS), np.int32),
        np.zeros(1 << 16, np.float32),
        np.zeros((slots, FAIR)),
        new_machine(ops, slots if learns else 0, seed=seed),
    )


def _pool(size: int, first: int) -> tuple[Any, Any, Any, Any]:
    following = np.arange(first + 1, first + size + 1, dtype=np.int32)
    following[-1] = NONE
    return np.zeros(size), np.zeros(size), np.zeros(size, np.int32), following


def grown(s: State) -> State:
    """The same state with twice the pool."""
    old = s.job_next.size
    entered, arrived, value, following = _pool(old, old)
    tail = int(s.count[FREE])
    following[-1] = tail  # the free list goes on with what was left of the old one
    if s.count[FREE_LEFT] == 0:
        following[-1] = NONE
    s.count[FREE] = old
    s.count[FREE_LEFT] += old
    return s._replace(
        job_entered=np.concatenate((s.job_entered, entered)),
        job_arrived=np.concatenate((s.job_arrived, arrived)),
        job_value=np.concatenate((s.job_value, value)),
        job_next=np.concatenate((s.job_next, following)),
    )


@inner
def age_bin(seconds: float) -> Any:
    """The histogram's bin of an age: the float's own exponent and its first six bits."""
    bits = np.float32(max(seconds, 2.0**-20)).view(np.int32)
    return min((bits >> 17) - (107 << 6), BINS - 1)


def bin_middles_s() -> Array:
    """The middle of every bin."""
    octave, part = np.divmod(np.arange(BINS), PARTS)
    return np.asarray(2.0 ** (octave - 20.0) * (1 + (part + 0.5) / PARTS))
