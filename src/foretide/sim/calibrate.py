"""Calibration: a twin of a recorded pipeline. What the journal measured becomes an app and the
costs of its micro-batches.

Service times, their variation and selectivities are measured. A batch's overhead is what it took
beyond the time of its slowest task: measured, and in older journals what follows from the events
per batch, the replicas and the service times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from foretide import journal
from foretide.apps import App, Service, Values
from foretide.errors import InvalidConfig, NotReady
from foretide.load import Load
from foretide.model import Plan, Sample, Snapshot
from foretide.quantities import from_outside
from foretide.sim.environment import Simulation, SimulationSettings
from foretide.sim.events.batch import BatchCosts
from foretide.topology import Topology

COMMIT_S = 0.05
"""What Spark does between a batch's delivery and the start of the next one on a small machine."""
_DRAWS = 2000
_FEW = 4
"""Windows whose counts say whether arrivals are even."""
_OFF = 0.03
"""How far measured shares of a split may be from 1."""
_LITTLE, _MUCH = 0.05, 0.5
"""Squared variation below which service times and arrivals are even, above which exponential."""
_NOT_MEASURED = (
    "the journal has no batch durations of operator '{}': record the pipeline on Spark with this "
    "version"
)


@dataclass(frozen=True, eq=False)
class Twin:
    """A recorded pipeline in micro-batch mode."""

    app: App
    costs: BatchCosts
    window_s: float

    def environment(self, load: Load, **changes: object) -> Simulation:
        """An environment of this pipeline under any load: systems can be tried on it."""
        by_key = {o.name: "key-hash" for o in self.app.topology.operators if o.stateful}
        settings = SimulationSettings(
            mode="batch", batch=self.costs, window_s=self.window_s, grouping=by_key
        )
        return Simulation(self.app, load, settings, **changes)

    def replay(self, recorded: Sequence[Snapshot], seed: int = 1) -> list[Snapshot]:
        """The twin's own windows under the load and with the replicas of these, beginning with what
        waited then.
        """
        load, names = load_of(self.app.topology, recorded), self.app.topology.names
        running = [{n: max(1, s.samples[n].replicas) for n in names} for s in recorded]
        environment = self.environment(load, replicas=running[0], seed=seed)
        environment.start_with(waiting_at_first(self.app.topology, recorded))
        seen = []
        for i, replicas in enumerate(running):
            environment.apply(Plan(replicas))
            seen.append(environment.read((i + 1) * load.interval_s))
        return seen


def calibrate(
    recording: Path | str,
    *,
    trigger_s: float = 1.0,
    after_s: float = 0.0,
    until_s: float | None = None,
) -> Twin:
    """A twin from a journal: from its windows between ``after_s`` (past the warm-up) and
    ``until_s`` seconds after its start.

    ``trigger_s`` is the trigger the pipeline runs with. Windows of an earlier run that
    had other operators are left out. Raises NotReady when an operator processed nothing in that
    time.
    """
    run, decisions = journal.read(recording)
    snapshots = [
        d.snapshot
        for d in decisions
        if d.snapshot is not None and set(d.snapshot.samples) == set(run.topology.names)
    ]
    if not snapshots:
        raise NotReady(
            f"{recording} holds no measured window: let the pipeline run for a while first"
        )
    began = snapshots[0].at - snapshots[0].window_s
    windows = [
        s
        for s in snapshots
        if s.at - s.window_s - began >= after_s and (until_s is None or s.at - began <= until_s)
    ]
    if not windows:
        span = f"{after_s:g} s" if until_s is None else f"{after_s:g} and {until_s:g} s"
        lasts_s = snapshots[-1].at - began
        raise NotReady(
            f"{recording} holds no whole window {'after' if until_s is None else 'between'} "
            f"{span}: it lasts {lasts_s:g} s"
        )
    return fitted(run.topology, windows, trigger_s)


def fitted(topology: Topology, recorded: Sequence[Snapshot], trigger_s: float = 1.0) -> Twin:
    """A twin of measured windows."""
    if not (np.isfinite(trigger_s) and trigger_s >= 0):
        raise InvalidConfig(f"a trigger of {trigger_s:g} s: it must be a finite number >= 0")
    app = app_of(topology, recorded)
    overheads_s = {n: overhead_s(app, n, recorded) for n in topology.names}
    return Twin(
        app,
        BatchCosts(trigger_s, task_s=0.0, overheads_s=overheads_s, commit_s=COMMIT_S),
        float(np.mean([s.window_s for s in recorded])),
    )


def overhead_s(app: App, name: str, recorded: Sequence[Snapshot]) -> float:
    """Seconds of an operator's batches beyond those of their slowest tasks, on average.

    Windows with the same replicas go together, because a batch may take events in one window and
    end in another. The window of a change is left out where others are there: its first batch may
    have run on the replicas before.
    """
    samples = _of(recorded, name)
    steady = [x for before, x in pairwise(samples) if before.replicas == x.replicas]
    windows: dict[int, list[Sample]] = {}
    for sample in steady if any(x.batches for x in steady) else samples:
        if sample.batches is not None:  # a long batch works in windows in which none ends
            windows.setdefault(max(1, sample.replicas), []).append(sample)
    spent_s = batches = 0.0
    for replicas, alike in windows.items():
        fixed = [(x.fixed_s, x.batches or 0.0) for x in alike if x.fixed_s is not None]
        if fixed:
            spent_s += sum(s * n for s, n in fixed)
            batches += sum(n for _, n in fixed)
            continue
        count = sum(x.batches or 0.0 for x in alike if x.batch_s is not None)
        if not count:
            continue
        took_s = sum((x.batch_s or 0.0) * (x.batches or 0.0) for x in alike)
        done = sum(x.processed for x in alike)
        by_key, service = app.topology[name].stateful, app.service[name]
        longest_s = longest_task_s(service, done / count, replicas, by_key)
        busy_s = sum(x.busy_s or 0.0 for x in alike)  # of these events, not of all
        spent_s += took_s - count * longest_s * busy_s / max(done * service.mean_s, 1e-9)
        batches += count
    if not batches:
        raise NotReady(_NOT_MEASURED.format(name))
    return max(0.0, spent_s / batches)


def longest_task_s(service: Service, events: float, tasks: int, by_key: bool = False) -> float:
    """Mean seconds of the slowest task of a batch: events one after another over the tasks, or
    (``by_key``) at random. The sum of n service times is taken as a gamma variable with their mean
    and variance, which is exact for exponential ones.

    >>> longest_task_s(Service(0.5), 5, 4)
    1.0
    >>> round(longest_task_s(Service(1.0, "exponential"), 2, 2), 1)  # 1 + 1/2
    1.5
    """
    whole = int(events)
    if events > whole:
        few, many = (longest_task_s(service, n, tasks, by_key) for n in (whole, whole + 1))
        return few + (events - whole) * (many - few)
    if whole == 0:
        return 0.0
    rng = np.random.default_rng(1)
    if by_key:
        each = rng.multinomial(whole, np.full(tasks, 1 / tasks), _DRAWS)
    else:
        each = np.full((_DRAWS, tasks), whole // tasks) + (np.arange(tasks) < whole % tasks)
    scv = {"exponential": 1.0, "uniform": service.spread**2 / 3}.get(service.law, 0.0)
    if scv == 0.0:
        return float(service.mean_s * each.max(axis=1).mean())
    drawn = rng.gamma(np.maximum(each / scv, 1e-9), service.mean_s * scv)
    return float(drawn.max(axis=1).mean())


def app_of(topology: Topology, recorded: Sequence[Snapshot]) -> App:
    """Service times, selectivities and the variation of both service and arrivals as measured."""
    service, selectivity = {}, {}
    for name in topology.names:
        samples = [s.samples[name] for s in recorded]
        done = sum(s.processed for s in samples)
        service[name] = _service(name, samples)
        for consumer in topology.successors(name):
            selectivity[name, consumer] = sum(s.emitted.get(consumer, 0.0) for s in samples) / done
    return App(
        "twin",
        "a recorded pipeline",
        "its journal",
        topology,
        service,
        selectivity,
        splits=_splits(topology, selectivity),
        values=Values(1000),
        arrivals="even" if _arrive_evenly(topology, recorded) else "poisson",
        window_s=recorded[0].window_s,
    )


def _arrive_evenly(topology: Topology, recorded: Sequence[Snapshot]) -> bool:
    """By the gaps between arrivals; where too few were measured, by how much the counts of windows
    vary: a Poisson process has a variance equal to the mean.
    """
    gaps = _scv([(x.scv_arrival, x) for n in topology.sources for x in _of(recorded, n)])
    if gaps is not None:
        return gaps < _MUCH
    counts = load_of(topology, recorded).counts
    return counts.size >= _FEW and bool(counts.var() < _MUCH * counts.mean())


def _of(recorded: Sequence[Snapshot], name: str) -> list[Sample]:
    return [s.samples[name] for s in recorded]


def _service(name: str, samples: Sequence[Sample]) -> Service:
    """Mean and law: fixed, uniform or exponential, the more the measured times vary."""
    busy = [(s.busy_s, s.processed) for s in samples if s.busy_s is not None and s.processed > 0]
    if not busy:
        raise NotReady(
            f"operator '{name}' processed nothing, or its busy time was not measured: no "
            "service time is known"
        )
    mean_s = max(1e-9, sum(b for b, _ in busy) / sum(n for _, n in busy))
    scv = _scv([(s.scv_service, s) for s in samples]) or 0.0
    if scv > _MUCH:
        return Service(mean_s, "exponential")
    if scv < _LITTLE:
        return Service(mean_s)
    return Service(mean_s, "uniform", spread=min(1.0, (3 * scv) ** 0.5))


def _scv(measured: Sequence[tuple[float | None, Sample]]) -> float | None:
    """Mean squared variation over the events of the windows that measured one."""
    known = [(v, s.processed) for v, s in measured if v is not None and s.processed > 0]
    return sum(v * n for v, n in known) / sum(n for _, n in known) if known else None


def _splits(topology: Topology, selectivity: dict[tuple[str, str], float]) -> frozenset[str]:
    """Operators that send every event to one of several consumers: their shares sum to 1. The
    measured ones are scaled to it: a batch may be counted in one window and its output in another.
    """
    splits = set()
    for name in topology.names:
        edges = [(name, c) for c in topology.successors(name)]
        total = sum(selectivity[e] for e in edges)
        if len(edges) > 1 and abs(total - 1) <= _OFF:
            splits.add(name)
            selectivity |= {e: selectivity[e] / total for e in edges}
    return frozenset(splits)


def waiting_at_first(
    topology: Topology, recorded: Sequence[Snapshot]
) -> dict[str, tuple[int, float]]:
    """Events that waited at each operator when the first window began, and the rate at which events
    come there.
    """
    span_s, waiting = sum(s.window_s for s in recorded), {}
    for name in topology.names:
        first = recorded[0].samples[name]
        rate = sum(x.arrived for x in _of(recorded, name)) / span_s
        before = first.backlog + first.processed + (first.dropped or 0.0) - first.arrived
        if rate > 0 and before >= 1:
            waiting[name] = int(before), rate
    return waiting


def load_of(topology: Topology, recorded: Sequence[Snapshot]) -> Load:
    """What came from outside, per window (of their mean length)."""
    counts = [sum(from_outside(s.samples[n]) for n in topology.sources) for s in recorded]
    return Load("recorded", np.array(counts), float(np.mean([s.window_s for s in recorded])))
