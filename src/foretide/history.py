"""History: the recent past of a topology, bounded, as planners and forecasters need it.

Owns the step from snapshots to series and averages. A failed read leaves a hole: NaN in a series,
skipped in an average, never 0.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from foretide.errors import NotReady
from foretide.model import Array, Sample, Snapshot
from foretide.quantities import RECENT, from_outside
from foretide.topology import Topology

SNAPSHOTS = 2000
"""Whole snapshots that are remembered, at least; of older windows only the rates are."""


class History:
    """The rates of the last ``limit`` windows, and the newest snapshots whole.

    >>> from foretide.topology import Operator
    >>> h = History(Topology((Operator("a"),)), limit=10)
    >>> a = Sample(arrived=50, processed=40, backlog=10, replicas=2, busy_s=8)
    >>> h.append(Snapshot(at=10.0, window_s=10.0, samples={"a": a}))
    >>> h.gap(20.0)
    >>> h.rates("a"), h.service_time_s("a"), h.backlog("a")
    (array([ 5., nan]), 0.2, 10)
    """

    def __init__(self, topology: Topology, limit: int = 100_000) -> None:
        self.topology = topology
        self.limit = limit
        self._windows = array("d")
        self._seen: list[Snapshot] = []
        self._rates = {n: array("d") for n in topology.names}
        self._offered = {n: array("d") for n in topology.names}
        self._changed_at: float | None = None
        self._asked: Mapping[str, int] = {}
        self._earlier_service_s: Mapping[str, float] = {}
        self._earlier_selectivity: Mapping[tuple[str, str], float] = {}
        self._least_service_s: Mapping[str, float] = {}

    def start_from(
        self, service_s: Mapping[str, float], selectivity: Mapping[tuple[str, str], float]
    ) -> None:
        """What an earlier run of the same topology measured: used until an operator has worked."""
        self._earlier_service_s, self._earlier_selectivity = service_s, selectivity

    def benchmarked(self, service_s: Mapping[str, float]) -> None:
        """Service times measured before the run: the least that is taken (PA-SPS takes the larger
        of benchmark and measurement).
        """
        self._least_service_s = service_s

    def append(self, snapshot: Snapshot) -> None:
        snapshot.check(self.topology)
        if self._seen and self._replicas(self._seen[-1]) != self._replicas(snapshot):
            self._changed_at = snapshot.at
        self._remember(snapshot.at, snapshot)

    def ask(self, replicas: Mapping[str, int]) -> None:
        """So many replicas were asked for; they may work later."""
        self._asked = {**self._asked, **replicas}

    def asked(self, name: str) -> int:
        """The replicas last asked for, at least 1: what a planner repeats that lets them be. Those
        that run where nothing was asked for.
        """
        return max(1, self._asked.get(name, self.latest.samples[name].replicas))

    def gap(self, at: float) -> None:
        """Mark the window that ended at ``at`` as not measured."""
        self._remember(at, None)

    def _remember(self, at: float, snapshot: Snapshot | None) -> None:
        self._windows.append(at)
        if snapshot is not None:
            self._seen.append(snapshot)
        if len(self._seen) >= 2 * SNAPSHOTS:
            del self._seen[:-SNAPSHOTS]
        for name in self.topology.names:
            rate = offered = math.nan
            if snapshot is not None:
                sample = snapshot.samples[name]
                rate = sample.arrived / snapshot.window_s
                offered = from_outside(sample) / snapshot.window_s
            self._rates[name].append(rate)
            self._offered[name].append(offered)
        if (
            len(self._windows) >= 2 * self.limit
        ):  # trimming in bulk keeps every slice of the recent past O(its length)
            del self._windows[: -self.limit]
            for series in (*self._rates.values(), *self._offered.values()):
                del series[: -self.limit]

    def state(self, last: int) -> dict[str, Any]:
        """The ends of the last windows and the rates in them, to be kept."""
        return {
            "windows": np.array(self._windows[-last:]),
            "rates": {n: np.array(series[-last:]) for n, series in self._rates.items()},
            "offered": {n: np.array(series[-last:]) for n, series in self._offered.items()},
        }

    def restore(self, state: Mapping[str, Any], now: float, window_s: float) -> None:
        """Begin at ``now`` with the rates of an earlier run; the windows since its end are holes.
        Snapshots are not kept: what replicas did and cost then is not what they do now.
        """
        windows = np.asarray(state["windows"], dtype=float)
        if not len(windows) or now < windows[-1]:
            return
        missed = min(self.limit, round((now - windows[-1]) / window_s))
        ends = now - window_s * np.arange(missed)[::-1]
        self._windows = array("d", np.concatenate((windows, ends)))
        for kept, saved in ((self._rates, state["rates"]), (self._offered, state["offered"])):
            for name in self.topology.names:
                known = np.full(len(windows), np.nan)
                if name in saved:
                    known[:] = np.asarray(saved[name], dtype=float)
                kept[name] = array("d", np.concatenate((known, np.full(missed, np.nan))))

    @staticmethod
    def _replicas(snapshot: Snapshot) -> dict[str, int]:
        return {n: s.replicas for n, s in snapshot.samples.items()}

    def __len__(self) -> int:
        """Windows remembered, holes included."""
        return min(len(self._windows), self.limit)

    @property
    def latest(self) -> Snapshot:
        """The newest window that was measured."""
        if not self._seen:
            raise NotReady("nothing was measured yet: no window has been read")
        return self._seen[-1]

    @property
    def now(self) -> float:
        if not self._windows:
            raise NotReady("nothing was measured yet: no window has been read")
        return self._windows[-1]

    @property
    def window_s(self) -> float:
        return self.latest.window_s

    def since_change_s(self) -> float | None:
        """Seconds since some operator's replicas were first seen changed; None when they never did,
        or when the clock was set back behind that moment.
        """
        if self._changed_at is None or self._changed_at > self.now:
            return None
        return self.now - self._changed_at

    def rates(self, name: str, last: int | None = None) -> Array:
        """Events/s that arrived at an operator, oldest first, NaN where a read failed."""
        return np.array(self._rates[name][-min(last or self.limit, self.limit) :])

    def offered(self, name: str, last: int | None = None) -> Array:
        """Events/s from outside that a source received; for a source that is not in a loop this is
        its arrival rate.
        """
        return np.array(self._offered[name][-min(last or self.limit, self.limit) :])

    def load(self, last: int | None = None) -> Array:
        """Events/s offered to all sources together."""
        return np.asarray(sum(self.offered(n, last) for n in self.topology.sources), dtype=float)

    def samples(self, name: str, last: int | None = None) -> Iterator[Sample]:
        """The measured samples of an operator, oldest first; holes are skipped. ``last`` counts
        measured windows.
        """
        return (s.samples[name] for s in self.recent(last))

    def recent(self, last: int | None = None) -> list[Snapshot]:
        """Measured snapshots, oldest first."""
        return self._seen[-min(last or self.limit, self.limit) :]

    def service_time_s(self, name: str, last: int = RECENT) -> float | None:
        """Mean busy seconds per event over the last measured windows in which the operator worked;
        that of an earlier run, or None, when it never did. Never less than its benchmark.
        """
        busy = done = 0.0
        counted = 0
        for snapshot in reversed(self._seen):
            s = snapshot.samples[name]
            if s.busy_s is not None and s.processed > 0:
                busy, done, counted = busy + s.busy_s, done + s.processed, counted + 1
                if counted == last:
                    break
        known = busy / done if done and busy > 0 else self._earlier_service_s.get(name)
        least = self._least_service_s.get(name)
        return known if least is None else max(least, known or 0.0)

    def selectivity(self, producer: str, consumer: str, last: int = RECENT) -> float | None:
        """Events emitted on an edge per event processed by its producer; that of an earlier run, or
        None, when the producer never processed any.
        """
        out = done = 0.0
        counted = 0
        for snapshot in reversed(self._seen):
            s = snapshot.samples[producer]
            if s.processed > 0:
                out, done, counted = (
                    out + s.emitted.get(consumer, 0.0),
                    done + s.processed,
                    counted + 1,
                )
                if counted == last:
                    break
        return out / done if done else self._earlier_selectivity.get((producer, consumer))

    def backlog(self, name: str) -> float:
        return self.latest.samples[name].backlog

    def replicas(self, name: str) -> int:
        return self.latest.samples[name].replicas

    def utilization(self, name: str) -> float | None:
        """Busy seconds / (replicas * window) in the newest measured window."""
        s = self.latest.samples[name]
        if s.busy_s is None or s.replicas == 0:
            return None
        return s.busy_s / (s.replicas * self.latest.window_s)
