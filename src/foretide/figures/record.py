"""RunRecord: one finished run, simulated or live, with everything that figures and reports need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from foretide.errors import InvalidRecord
from foretide.figures.account import Account, Promise
from foretide.figures.demand import ReplicaDemand, WindowArrays
from foretide.journal import Run
from foretide.model import Array, Decision, Latency, Plan, Prices, Snapshot
from foretide.plan.optimum import optimal_schedule
from foretide.quantities import Counts, merged_latency
from foretide.topology import Topology


@dataclass(frozen=True, eq=False)
class RunRecord:
    """One run. ``snapshots`` are its measured windows, oldest first; arrays per window match them.

    ``needs`` are the replicas that the load as it came needed, per operator and window; NaN where
    they are unknown. ``start`` are the replicas before the first window (None: those of the first
    window). ``latencies_ms`` are end to end, one per event that left, or one per group of
    ``latency_weights`` events; None when only each window's summary is known. ``share`` of the
    events was promised to be within ``target_latency_s``. With ``shared_slots`` all operators use
    the same task slots, which each of them shows as its replicas.
    """

    system: str
    topology: Topology
    window_s: float
    snapshots: tuple[Snapshot, ...]
    decisions: tuple[Decision, ...]
    needs: Mapping[str, Array | Counts]
    start: Mapping[str, int] | None = None
    latencies_ms: Array | None = None
    latency_weights: Array | None = None
    target_latency_s: float | None = None
    share: float | None = None
    shared_slots: bool = False
    prices: Prices = field(default_factory=Prices)

    def __post_init__(self) -> None:
        for name in self.topology.names:
            if len(self.needs[name]) != len(self.snapshots):
                raise InvalidRecord(
                    f"the need of '{name}' is known for {len(self.needs[name])} windows, but "
                    f"{len(self.snapshots)} were measured"
                )

    @classmethod
    def of_journal(cls, run: Run, decisions: Sequence[Decision]) -> RunRecord:
        """A run from its journal: needs come from measured load, selectivities and service times.

        Windows of an earlier run in the same journal that had other operators are left out.
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
            share=run.share,
            shared_slots=has_shared_slots(run),
            prices=run.prices,
        )

    def since(self, windows: int) -> RunRecord:
        """The run after its first ``windows`` measured windows: what a system does that is in
        operation, without what its first minutes cost while it knew nothing. Latencies are then
        those of the windows' summaries.
        """
        if not windows:
            return self
        last = self.snapshots[windows - 1]
        return replace(
            self,
            snapshots=self.snapshots[windows:],
            decisions=tuple(d for d in self.decisions if d.at > last.at),
            needs={n: need[windows:] for n, need in self.needs.items()},
            start={n: s.replicas for n, s in last.samples.items()},
            latencies_ms=None,
            latency_weights=None,
        )

    @cached_property
    def priced(self) -> Plan | None:
        """The last plan that came with the price of other promises; None where none did."""
        plans = (d.proposed for d in reversed(self.decisions))
        return next((p for p in plans if p is not None and p.choices), None)

    @cached_property
    def windows(self) -> tuple[WindowArrays, ...]:
        """The measured windows as arrays over the operators."""
        return tuple(WindowArrays.of(self.topology, s.window_s, s.samples) for s in self.snapshots)

    @cached_property
    def account(self) -> Account:
        """What the run cost and served, over all its windows."""
        names = self.topology.names
        start = None if self.start is None else np.array([float(self.start[n]) for n in names])
        promise = Promise(self.target_latency_s, self.share)
        account = Account(self.topology, self.prices, promise, start, self.shared_slots)
        needs = np.array([self.needs[n] for n in names], dtype=float).reshape(len(names), -1)
        for window, need, s in zip(self.windows, needs.T, self.snapshots, strict=True):
            account.add(window, need, end_to_end(self.topology, s))
        return account

    @cached_property
    def seconds(self) -> Array:
        """How long each window was."""
        return np.array([s.window_s for s in self.snapshots])

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
    def optimum(self) -> dict[str, Counts]:
        """The cheapest replicas per operator and window for the load as it came, within each
        operator's maximum; an unknown need counts as one replica.
        """
        return {
            n: optimal_schedule(
                np.nan_to_num(np.asarray(self.needs[n], dtype=float), nan=1.0),
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
        return np.array([float(w.offered.sum()) for w in self.windows])

    def rates(self) -> Array:
        """Events/s from outside, over the real length of each window: a slow loop's windows are
        longer than planned.
        """
        return np.asarray(self.offered() / self.seconds)

    def forecast_next(self) -> Array:
        """Events/s forecast for each window one step ahead, all sources together; NaN where there
        was no forecast.
        """
        return self._forecast(steps=1)

    def forecast_latest(self) -> Array:
        """Events/s that the latest forecast before each window gave for it: between two plans this
        is a forecast several steps ahead.
        """
        return self._forecast(steps=None)

    def _forecast(self, steps: int | None) -> Array:
        expected: dict[float, float] = {}
        coming: list[float] = []
        for d in self.decisions:
            value = coming.pop(0) if coming else np.nan
            if d.snapshot is not None:
                expected[d.snapshot.at] = value
            forecasts = [d.forecasts[n].mean for n in self.topology.sources if n in d.forecasts]
            if len(forecasts) == len(self.topology.sources):
                coming = [sum(step) for step in zip(*forecasts, strict=False)][:steps]
        return np.array([expected.get(s.at, np.nan) for s in self.snapshots])


def has_shared_slots(run: Run) -> bool:
    """Whether the operators of a run share the task slots of one application, as the queries of an
    attached one do.
    """
    return bool(run.settings.get("shared_slots"))


def end_to_end(topology: Topology, snapshot: Snapshot) -> Latency | None:
    """The latency of the events that left in a window; where only sinks measured it, all sinks
    together.
    """
    if snapshot.latency is not None:
        return snapshot.latency
    return merged_latency([snapshot.samples[n].latency for n in topology.sinks])


def measured_needs(topology: Topology, snapshots: Sequence[Snapshot]) -> dict[str, Array]:
    """Replicas that the load from outside kept busy in each window, at the service times and
    selectivities measured up to then; NaN where a service time was not known yet.
    """
    demand = ReplicaDemand(topology)
    rows = [demand.add(WindowArrays.of(topology, s.window_s, s.samples)) for s in snapshots]
    table = np.array(rows).reshape(len(rows), len(topology.names))
    return {n: table[:, i] for i, n in enumerate(topology.names)}
