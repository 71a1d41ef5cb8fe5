"""The engines' state: flat arrays in one tuple, so that compiled code holds it whole and Python
reads it between two calls.

A *slot* is a place for one replica; operator ``o`` owns slots ``base .. base + most`` and the first
``replicas`` of them are active. A *job* is one event at one operator; jobs live in a pool and queue
as linked lists. Arrays of records keep what is used together in one place of memory; indexes kept
in them are unsigned, because Python's negative ones cost compiled code a test each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from foretide.apps import App
from foretide.balance.osg_machine import new_machine
from foretide.jit import lean_inner as inner
from foretide.load import Load
from foretide.model import Array
from foretide.sim.events.agenda import new_agenda
from foretide.sim.events.rng import streams

FIXED, EXPONENTIAL, UNIFORM, BY_VALUE = range(4)  # service laws
POISSON, BATCHED, EVEN = range(3)  # arrivals
LAWS = {"fixed": FIXED, "exponential": EXPONENTIAL, "uniform": UNIFORM, "by-value": BY_VALUE}


def _record(**fields: str) -> np.dtype[Any]:
    """A type whose fields, named with spaces between them, lie beside each other; a keyword for
    each type of field.
    """
    return np.dtype(
        [(name, kind) for kind, names in fields.items() for name in names.split()], align=True
    )


# a job: when the event entered the topology, when it came to the operator where it is now, the one
# behind it, where it is sent; the jobs that came of one input form a ring, so that the last of them
# is known by being alone in it
JOBS = _record(f8="entered arrived", u4="value next to kin_after kin_before")
# an operator: its slots and their grouping, edges, idle replicas; seconds; the last ones of each
# belong to its micro-batch
OPS = _record(
    i4="base most replicas grouping cursor law edges edges_end splits paused idle phase in_batch "
    "tasks",
    u4="batch",
    f8="mean_s spread last_arrival trigger_s pause_s overhead_s task_s batch_at ready_at commit_s "
    "limit_s",
)
# a slot: its queue, the job it works on, an entry in the ring of idle replicas; since when it is
# busy (within the window), the service time drawn, the slow-down it was started with, events of a
# task
SLOTS = _record(
    u4="head tail length job operator host ring", f8="busy_since service_s slow task_events"
)
# what groupings know of a slot: events given in this window, utilization, service time of the last
# windows, when it is free
FAIR = _record(f8="assigned utilization event_s free_at")
# sums over the window, per operator and per slot
W_OPS = _record(
    f8="arrived offered processed dropped sojourn age within gaps gap gap2 works work_s work2 "
    "batches batches_s"
)
W_SLOTS = _record(f8="busy_s cpu_s done")
# sums over the window, of inputs
COMPLETED, COMPLETION_S, COMPLETED_WITHIN, TREES = range(4)
# clock
NOW, NEXT_ARRIVAL, BIN_S, BATCH_S, CARRY, TIMEOUT_S, TARGET_S, WINDOW_S, CLOCK = range(9)
# count
FREE, FREE_LEFT, DONE, BIN, BURST, ARRIVALS_LAW, FANOUT, OPEN, COUNT = range(9)

# latency histogram: 2^-20 s to 2^20 s, every octave in 64 parts (1.6 % wide at most)
OCTAVES, PARTS = 40, 64
BINS = OCTAVES * PARTS
NONE = 2**32 - 1
POOL = 1024  # jobs at the start; the pool doubles when it is full


class EngineState(NamedTuple):
    """All that an engine reads and writes."""

    clock: Any
    count: Any
    rng: Any
    rates: Any  # offered events/s per interval of the load
    sources: Any  # operators that events come to from outside
    value_cdf: Any  # cumulated probability of each event value
    by_value_s: Any  # service time per operator and value
    jobs: Any  # JOBS
    due_time: Any  # the next instant of every slot, a tournament
    due_bits: Any  # the same memory as whole numbers
    due_slot: Any
    ops: Any  # OPS
    edge_to: Any
    edge_share: Any  # events emitted per event; cumulated over the edges of an operator that splits
    slots: Any  # SLOTS
    host_busy: Any  # busy replicas per host
    host_cores: Any
    w_ops: Any  # W_OPS
    w_slots: Any  # W_SLOTS
    w_edge: Any
    ages: Any  # histogram of ages per operator in this window
    w_trees: Any  # inputs completed in this window, their seconds, those within the target
    tree_ages: Any  # histogram of their completion times
    done: Any  # end-to-end latencies not yet fetched, seconds
    fair: Any  # what groupings know of each slot
    osg: Any  # the machines of online shuffle grouping; None when no operator uses it
    python: Any  # addresses of the callbacks of Python groupings; None when no operator uses one


def new_state(
    app: App,
    load: Load,
    groupings: Array,
    target_s: float,
    seed: int,
    hosts: int,
    learns: bool = False,
) -> EngineState:
    """The state before the first event; every operator starts with its minimum of replicas.
    ``learns``: some grouping is osg.
    """
    topology = app.topology
    place = {n: i for i, n in enumerate(topology.names)}
    out = [
        (place[p], place[c], app.share(p, c))
        for p in topology.names
        for c in topology.successors(p)
    ]
    slots = sum(o.max_replicas for o in topology.operators)
    ops, of_slots, share = _operators(app, groupings, out, slots)
    return EngineState(
        _clock(app, load, target_s),
        _counters(app, out),
        streams(seed),
        load.rates(),
        np.array([place[n] for n in topology.sources], np.uint32),
        np.cumsum(app.values.probabilities()),
        _costs_by_value(app),
        _pool(POOL, 0),
        *new_agenda(slots),
        ops,
        np.array([c for _, c, _ in out] or [0], np.uint32),
        share,
        of_slots,
        np.zeros(hosts, np.int64),
        np.full(hosts, app.host_cores),
        np.zeros(len(ops), W_OPS),
        np.zeros(slots, W_SLOTS),
        np.zeros(max(1, len(out))),
        np.zeros((len(ops), BINS), np.int32),
        np.zeros(TREES),
        np.zeros(BINS, np.int32),
        np.zeros(1 << 16, np.float32),
        np.zeros(slots, FAIR),
        new_machine(len(ops), slots, seed=seed) if learns else None,
        None,
    )


def _operators(
    app: App, groupings: Array, out: list[tuple[int, int, float]], slots: int
) -> tuple[Any, Any, Array]:
    """Operators, their slots, and the share of events sent along each edge (cumulated over the
    edges of an operator that splits).
    """
    ops, of_slots, base = np.zeros(len(app.topology.names), OPS), np.zeros(slots, SLOTS), 0
    share = np.array([s for *_, s in out] or [0.0])
    for i, o in enumerate(app.topology.operators):
        service, op = app.service[o.name], ops[i]
        edges = [e for e, edge in enumerate(out) if edge[0] == i]
        op["base"], op["most"] = base, o.max_replicas
        op["replicas"], op["idle"] = o.min_replicas, o.min_replicas
        op["grouping"], op["law"] = groupings[i], LAWS[service.law]
        op["splits"] = o.name in app.splits
        op["edges"], op["edges_end"] = (edges[0], edges[-1] + 1) if edges else (0, 0)
        op["mean_s"], op["spread"], op["last_arrival"] = service.mean_s, service.spread, np.nan
        if o.name in app.splits:
            share[edges] = np.cumsum(share[edges])
        of_slots["operator"][base : base + o.max_replicas] = i
        base += o.max_replicas
    of_slots["job"], of_slots["host"], of_slots["ring"] = NONE, NONE, np.arange(slots)
    return ops, of_slots, share


def _costs_by_value(app: App) -> Array:
    """Service time per operator and event value, where it depends on the value."""
    table = np.zeros((len(app.topology.names), app.values.count))
    for i, name in enumerate(app.topology.names):
        if app.service[name].by_value_s:
            table[i] = np.resize(app.service[name].by_value_s, app.values.count)
    return table


def _clock(app: App, load: Load, target_s: float) -> Array:
    clock = np.zeros(CLOCK)
    clock[WINDOW_S] = 1.0
    clock[[BIN_S, BATCH_S, TARGET_S]] = load.interval_s, load.batch_s, target_s
    clock[[TIMEOUT_S, NEXT_ARRIVAL]] = np.inf if app.timeout_s is None else app.timeout_s, -1.0
    return clock


def _counters(app: App, out: list[tuple[int, int, float]]) -> Any:
    count = np.zeros(COUNT, np.uint32)
    operators = range(len(app.topology.names))
    copies = [sum(int(np.ceil(s)) for p, _, s in out if p == i) for i in operators]
    law = {"poisson": POISSON, "even": EVEN}.get(app.arrivals, BATCHED)
    count[[FREE_LEFT, ARRIVALS_LAW, FANOUT]] = POOL, law, max(copies) + 1
    count[OPEN] = NONE
    return count


def _pool(size: int, first: int, last: int = NONE) -> Any:
    """Free jobs that are linked one to the next and then to ``last``."""
    jobs = np.zeros(size, JOBS)
    jobs["next"] = np.arange(first + 1, first + size + 1)
    jobs["next"][-1] = last
    return jobs


def grown(s: EngineState) -> EngineState:
    """The same state with twice the pool; the rest of the old free list follows the new one."""
    old = s.jobs.size
    more = _pool(old, old, int(s.count[FREE]) if s.count[FREE_LEFT] else NONE)
    s.count[FREE] = old
    s.count[FREE_LEFT] += old
    return s._replace(jobs=np.concatenate((s.jobs, more)))


@inner
def age_bin(seconds: float) -> Any:
    """The histogram's bin of an age: the float's own exponent and its first six bits."""
    bits = np.float32(max(seconds, 2.0**-20)).view(np.int32)
    return min((bits >> 17) - (107 << 6), BINS - 1)


def bin_middles_s() -> Array:
    """The middle of every bin."""
    octave, part = np.divmod(np.arange(BINS), PARTS)
    return np.asarray(2.0 ** (octave - 20.0) * (1 + (part + 0.5) / PARTS))
