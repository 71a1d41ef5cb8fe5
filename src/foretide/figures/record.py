"""RunRecord: one finished run of either world, with all that the figures and the report are
computed from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foretide.errors import InvalidRecord
from foretide.journal import Run
from foretide.model import Array, Decision, Prices, Snapshot
from foretide.plan.flow import Flow
from foretide.plan.optimum import needs as needs_of
from foretide.plan.optimum import optimal_schedule
from foretide.topology import Topology

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RunRecord:
    """One run. ``snapshots`` are its measured windows, oldest first; arrays per window match them.

    ``needs`` are the replicas that the load as it came needed, per operator and window. ``start``
    is what ran before the first window (None: what the first window saw). ``latencies_ms`` are end
    to end, one per event that left, or one per group of ``latency_weights`` events; None when only
    each window's summary is known. ``over_replicas`` is the total that the owner would run without
    scaling (None: every operator's peak need).
    """

    system: str
    topology: Topology
    window_s: float
    snapshots: tuple[Snapshot, ...]
    decisions: tuple[Decision, ...]
    needs: Mapping[str, Counts]
    start: Mapping[str, int] | None = None
    latencies_ms: Array | None = None
    latency_weights: Array | None = None
    target_latency_s: float | None = None
    over_replicas: int | None = None
    prices: Prices = field(default_factory=Prices)

    def __post_init__(self) -> None:
        for name in self.topology.names:
            if len(self.needs[name]) != len(self.snapshots):
                raise InvalidRecord(
                    f"the need of '{name}' is known for {len(self.needs[name])} windows, measured "
                    f"were {len(self.snapshots)}"
                )

    @classmethod
    def of_journal(cls, run: Run, decisions: Sequence[Decision]) -> RunRecord:
        """A live run as its journal tells it: needs come from measured arrivals, selectivities and
        service times.

        Windows of an earlier life of the run that had other operators are left out.
        """
        names = set(run.topology.names)
        decisions = [d for d in decisions if d.snapshot is None or set(d.snapshot.samples) == names]
        snapshots = tuple(d.snapshot for d in decisions if d.snapshot is not None)
        return cls(
            run.system,
            run.topology,
            run.window_s,
            snapshots,
            tuple(decisions),
            measured_needs(run.topology, snapshots),
            target_latency_s=run.target_latency_s,
            prices=run.prices,
        )

    def replicas(self, name: str) -> Counts:
        """Replicas per window."""
        return self._replicas[name]

    @cached_property
    def _replicas(self) -> dict[str, Counts]:
        return {
            n: np.array([s.samples[n].replicas for s in self.snapshots], dtype=np.int64)
            for n in self.topology.names
        }

    @cached_property
    def seconds(self) -> Array:
        """How long each window was."""
        return np.array([s.window_s for s in self.snapshots])

    @cached_property
    def optimum(self) -> dict[str, Counts]:
        """The cheapest replicas per operator and window for the load as it came, within each
        operator's maximum.
        """
        return {
            n: optimal_schedule(
                self.needs[n],
                self.prices.per_window(self.window_s),
                self.before(n),
                self.topology[n].max_replicas,
            )
            for n in self.topology.names
        }

    def before(self, name: str) -> int:
        """Replicas before the first window."""
        if self.start is not None:
            return self.start[name]
        return self.snapshots[0].samples[name].replicas if self.snapshots else 1

    def offered(self) -> Array:
        """Events from outside, per window."""
        return self._offered

    @cached_property
    def _offered(self) -> Array:
        return offered(self.topology, self.snapshots)

    def rates(self) -> Array:
        """Events/s from outside, per window as long as it really was: a slow loop's windows are
        longer than planned.
        """
        return np.asarray(self.offered() / self.seconds)

    def forecast_next(self) -> Array:
        """Events/s forecast for each window one step ahead, all sources together; NaN where nobody
        forecast it.
        """
        place = {s.at: i for i, s in enumerate(self.snapshots)}
        ahead = np.full(len(self.snapshots), np.nan)
        for d in self.decisions:
            i = None if d.snapshot is None else place[d.snapshot.at] + 1
            if (
                i is not None
                and i < len(ahead)
                and all(n in d.forecasts for n in self.topology.sources)
            ):
                ahead[i] = sum(d.forecasts[n].mean[0] for n in self.topology.sources)
        return ahead


def offered(topology: Topology, snapshots: Sequence[Snapshot]) -> Array:
    """Events from outside, per window: what sources were offered, or all they received where that
    was not told apart.
    """
    found = np.zeros(len(snapshots))
    for i, s in enumerate(snapshots):
        for n in topology.sources:
            sample = s.samples[n]
            found[i] += sample.arrived if sample.offered is None else sample.offered
    return found


def measured_visits(topology: Topology, snapshots: Sequence[Snapshot]) -> dict[str, float]:
    """Events that reach each operator per event offered, from all that was emitted and processed in
    the run.

    A producer that never processed an event passes nothing on.
    """
    processed = {n: sum(s.samples[n].processed for s in snapshots) for n in topology.names}
    shares = {
        (p, c): sum(s.samples[p].emitted.get(c, 0.0) for s in snapshots) / processed[p]
        if processed[p]
        else 0.0
        for p, c in topology.edges
    }
    by_source = {
        n: sum(
            a if (a := s.samples[n].offered) is not None else s.samples[n].arrived
            for s in snapshots
        )
        for n in topology.sources
    }
    total = sum(by_source.values())
    entering = {n: (v / total if total else 1.0 / len(by_source)) for n, v in by_source.items()}
    return Flow(topology, shares).through(entering)


def measured_needs(topology: Topology, snapshots: Sequence[Snapshot]) -> dict[str, Counts]:
    """Replicas that the offered load of each window keeps busy, at the run's mean service times and
    selectivities.

    An operator whose busy time was never measured needs one replica, as far as anybody knows.
    """
    rates = offered(topology, snapshots) / np.array([s.window_s for s in snapshots])
    visits = measured_visits(topology, snapshots) if snapshots else {}
    found: dict[str, Counts] = {}
    for n in topology.names:
        known = [
            s.samples[n]
            for s in snapshots
            if s.samples[n].busy_s is not None and s.samples[n].processed > 0
        ]
        busy_s, done = sum(s.busy_s or 0.0 for s in known), sum(s.processed for s in known)
        found[n] = needs_of(rates * visits.get(n, 0.0), busy_s / done if done else 0.0)
    return found
