"""Calibration: a twin of a recorded pipeline. What the journal measured becomes an app and the
costs of its micro-batches.

Service times, their variation and selectivities are measured. A batch's overhead is not, so it is
fitted: the twin runs the recorded load with the recorded replicas, and each operator's overhead is
adjusted until its batches take as long as the recorded ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from foretide import journal
from foretide.apps import App, Service, Values
from foretide.errors import InvalidConfig, NotReady
from foretide.load import Load
from foretide.model import Plan, Snapshot
from foretide.quantities import from_outside
from foretide.sim.environment import Simulation, SimulationSettings
from foretide.sim.events.batch import BatchCosts
from foretide.topology import Topology

_ROUNDS = 6
_STEEPEST = 20.0
_NOT_MEASURED = (
    "the journal has no batch durations of operator '{}': record the pipeline on Spark with this "
    "version"
)
_NOT_RUN = (
    "no batch of operator '{}' ends in the twin of these windows: too few events came in them, or "
    "they are too short for one"
)


@dataclass(frozen=True, eq=False)
class Twin:
    """A recorded pipeline in micro-batch mode."""

    app: App
    costs: BatchCosts
    window_s: float

    def environment(self, load: Load, **changes: object) -> Simulation:
        """An environment of this pipeline under any load: systems can be tried on it."""
        settings = SimulationSettings(mode="batch", batch=self.costs, window_s=self.window_s)
        return Simulation(self.app, load, settings, **changes)

    def replay(self, recorded: Sequence[Snapshot], seed: int = 1) -> list[Snapshot]:
        """The twin's own windows under the load and with the replicas of these."""
        load, names = load_of(self.app.topology, recorded), self.app.topology.names
        running = [{n: max(1, s.samples[n].replicas) for n in names} for s in recorded]
        environment = self.environment(load, replicas=running[0], seed=seed)
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
    real_s = {n: _mean_batch_s(recorded, n, _NOT_MEASURED) for n in topology.names}
    overheads_s = dict.fromkeys(topology.names, 0.3 * trigger_s)
    twin = Twin(
        app,
        BatchCosts(trigger_s, task_s=0.0, overheads_s=overheads_s),
        float(np.mean([s.window_s for s in recorded])),
    )
    slopes = {n: 1.0 / max(1.0 - _busy_share(recorded, n), 1.0 / _STEEPEST) for n in topology.names}
    before: dict[str, tuple[float, float]] = {}
    for _ in range(_ROUNDS):
        seen = twin.replay(recorded)
        for n in topology.names:
            now = overheads_s[n], _mean_batch_s(seen, n, _NOT_RUN)
            slopes[n] = _slope(before.get(n), now, slopes[n])
            before[n] = now
            overheads_s[n] = max(0.0, now[0] + (real_s[n] - now[1]) / slopes[n])
        twin = replace(twin, costs=replace(twin.costs, overheads_s=dict(overheads_s)))
    return twin


def _slope(before: tuple[float, float] | None, now: tuple[float, float], known: float) -> float:
    """Seconds that a batch grows by per second of overhead, from two (overhead, batch): at least 1,
    and the steeper the busier the replicas, because a longer batch takes in more events.
    """
    if before is None or abs(now[0] - before[0]) < 1e-3:
        return known
    return min(max((now[1] - before[1]) / (now[0] - before[0]), 1.0), _STEEPEST)


def _busy_share(recorded: Sequence[Snapshot], name: str) -> float:
    """Busy seconds of an operator's replicas, of all their seconds."""
    held_s = sum(s.samples[name].replicas * s.window_s for s in recorded)
    return min(1.0, sum(s.samples[name].busy_s or 0.0 for s in recorded) / max(held_s, 1e-9))


def app_of(topology: Topology, recorded: Sequence[Snapshot]) -> App:
    """Service times and selectivities as measured; exponential service where its variation is above
    a half, else fixed.
    """
    service, selectivity = {}, {}
    for name in topology.names:
        samples = [s.samples[name] for s in recorded]
        done = sum(s.processed for s in samples)
        busy = [
            (s.busy_s, s.processed) for s in samples if s.busy_s is not None and s.processed > 0
        ]
        if not busy:
            raise NotReady(
                f"operator '{name}' processed nothing, or its busy time was not measured: no "
                "service time is known"
            )
        scv = [
            (s.scv_service, s.processed)
            for s in samples
            if s.scv_service is not None and s.processed > 0
        ]
        varied = sum(v * n for v, n in scv) / sum(n for _, n in scv) > 0.5 if scv else False
        mean_s = max(1e-9, sum(b for b, _ in busy) / sum(n for _, n in busy))
        service[name] = Service(mean_s, "exponential" if varied else "fixed")
        for consumer in topology.successors(name):
            selectivity[name, consumer] = sum(s.emitted.get(consumer, 0.0) for s in samples) / done
    return App(
        "twin",
        "a recorded pipeline",
        "its journal",
        topology,
        service,
        selectivity,
        values=Values(1000),
        arrivals="poisson",
        window_s=recorded[0].window_s,
    )


def load_of(topology: Topology, recorded: Sequence[Snapshot]) -> Load:
    """What came from outside, per window (of their mean length)."""
    counts = [sum(from_outside(s.samples[n]) for n in topology.sources) for s in recorded]
    return Load("recorded", np.array(counts), float(np.mean([s.window_s for s in recorded])))


def _mean_batch_s(recorded: Sequence[Snapshot], name: str, otherwise: str) -> float:
    samples = [s.samples[name] for s in recorded]
    known = [(s.batch_s, s.batches) for s in samples if s.batch_s is not None and s.batches]
    if not known:
        raise NotReady(otherwise.format(name))
    return sum(took_s * n for took_s, n in known) / sum(n for _, n in known)
