"""The accounts of a running pipeline: what arrived at every operator, what it has done, what waits.

Totals come from the manifests and are exact across restarts; busy times and latencies of a window
are kept only here. Pure bookkeeping under one lock; it knows no Spark and no clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from foretide.model import Array
from foretide.spark.edge.protocol import Manifest
from foretide.spark.run.arrivals import SourceArrivals
from foretide.spark.worker.meter import Report

MOST = 2000
"""Deliveries that a window keeps at most, the newest ones, where nothing reads windows."""


@dataclass(frozen=True)
class Delivery:
    """One delivered batch. ``waited_s`` sums over its events the time from their delivery here to
    now; ``grouping_s`` is what tasks spent on assigning events and on learning from them;
    ``took_s`` is from Spark's start of the batch to its delivery.
    """

    manifest: Manifest
    consumed: Mapping[str, int]
    delivered: Mapping[str, int]
    reports: Sequence[Report] = ()
    waited_s: float | None = None
    latency_of: tuple[Array, float, float] | None = None
    grouping_s: float = 0.0
    took_s: float = 0.0

    @property
    def events(self) -> int:
        return sum(self.consumed.values())


@dataclass
class Window:
    """An operator between two reads."""

    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def processed(self) -> int:
        return sum(b.events for b in self.deliveries)

    @property
    def busy_s(self) -> float | None:
        """Busy seconds; None when no batch of the window could measure any."""
        known = [r.busy_s for b in self.deliveries for r in b.reports]
        return sum(known) if known else None

    @property
    def sojourn_s(self) -> float | None:
        """Mean seconds from an event's delivery to its end here; None when no batch of the window
        could tell.
        """
        known = [(b.waited_s, b.events) for b in self.deliveries if b.waited_s is not None]
        events = sum(n for _, n in known)
        return max(0.0, sum(s for s, _ in known)) / events if events else None

    @property
    def batch_s(self) -> float | None:
        """Mean seconds of the batches that had events."""
        took_s = [b.took_s for b in self.deliveries if b.events]
        return sum(took_s) / len(took_s) if took_s else None

    @property
    def diverted(self) -> int:
        return sum(r.diverted for b in self.deliveries for r in b.reports)

    def by_replica(self, replicas: int) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """(busy seconds, events) per replica, in order of their ids; None when nothing was measured
        per replica.
        """
        reports = [r for b in self.deliveries for r in b.reports]
        if not reports:
            return None
        size = max(replicas, max(r.replica for r in reports) + 1)
        busy, done = np.zeros(size), np.zeros(size)
        for r in reports:
            busy[r.replica] += r.busy_s
            done[r.replica] += r.processed
        return tuple(busy.tolist()), tuple(done.tolist())

    @property
    def scv_service(self) -> float | None:
        """Variance over squared mean of the sampled service times; None below ten samples."""
        n = sum(r.sampled for b in self.deliveries for r in b.reports)
        mean = sum(r.time_s for b in self.deliveries for r in b.reports) / max(n, 1)
        if n < 10 or mean <= 0:
            return None
        square = sum(r.time_squared for b in self.deliveries for r in b.reports) / n
        return max(0.0, square / mean**2 - 1.0)

    def emitted(self, folder: str) -> int:
        return sum(b.delivered.get(folder, 0) for b in self.deliveries)

    def ages(self) -> tuple[list[Array], list[float], float]:
        """(ages in seconds per group, events each group stands for, sum of all ages) when the
        events were done here.
        """
        groups: list[Array] = []
        counts: list[float] = []
        total = 0.0
        for b in self.deliveries:
            at = b.manifest.at
            parts = [(r.stamps, float(r.processed), r.stamp_sum) for r in b.reports]
            if b.latency_of is not None:
                parts.append(b.latency_of)
            for stamps, count, stamp_sum in parts:
                groups.append(at - stamps)
                counts.append(count)
                total += at * count - stamp_sum
        return groups, counts, total


@dataclass(frozen=True)
class Inputs:
    """Where an operator's events come from: operators, and sources outside the pipeline."""

    producers: tuple[str, ...] = ()
    sources: tuple[SourceArrivals, ...] = ()


class Accounts:
    """All operators' totals and the deliveries of the current window. ``changed`` is its lock and
    is notified of every delivery.
    """

    def __init__(
        self,
        manifests: Mapping[str, Manifest | None],
        inputs: Mapping[str, Inputs] | None = None,
        on_delivery: Callable[[str, Delivery], None] = lambda name, delivery: None,
    ) -> None:
        self.changed = threading.Condition()
        self._latest = {n: m or Manifest(-1, 0.0, 0) for n, m in manifests.items()}
        self._windows = {n: Window() for n in manifests}
        self._inputs = dict(inputs or {})
        self._on_delivery = on_delivery

    def latest(self, name: str) -> Manifest:
        """Totals of an operator: its newest manifest, an empty one before its first batch."""
        with self.changed:
            return self._latest[name]

    def add(self, name: str, delivery: Delivery) -> None:
        self._on_delivery(name, delivery)
        with self.changed:
            self._latest[name] = delivery.manifest
            deliveries = self._windows[name].deliveries
            deliveries.append(delivery)
            del deliveries[:-MOST]
            self.changed.notify_all()

    def carried(self, producer: str, consumer: str) -> int:
        """Events that an edge ever carried."""
        with self.changed:
            return self._latest[producer].delivered.get(f"to.{consumer}", 0)

    def consumed(self, name: str) -> int:
        """Events that an operator ever finished."""
        return sum(self.latest(name).consumed.values())

    def arrivals(self, name: str, at: float, lag: int = 0) -> tuple[int, int]:
        """Events that ever arrived at an operator by ``at``: (from operators, from outside). ``lag``
        are those that its own sources still hold.
        """
        with self.changed:
            inputs, done = self._inputs.get(name, Inputs()), self._latest[name].consumed
            inside = sum(self.carried(p, name) for p in inputs.producers)
            outside = sum(max(s.due(at), done.get(s.name, 0)) for s in inputs.sources)
            return inside, outside + lag

    def backlog(self, name: str, at: float) -> int:
        """Events that arrived at an operator and are not done: exact for edges and generated
        loads.
        """
        with self.changed:
            return sum(self.arrivals(name, at)) - self.consumed(name)

    def idle(self, at: float) -> bool:
        """Whether nothing waits anywhere and every generated load has come to its end."""
        with self.changed:  # or an event could move on between two of these looks
            for name, inputs in self._inputs.items():
                done = self._latest[name].consumed
                if any(done.get(s.name, 0) < s.total for s in inputs.sources):
                    return False
            return all(self.backlog(n, at) == 0 for n in self._latest)

    def take(self) -> dict[str, Window]:
        """The deliveries since the last call; the next window starts empty."""
        with self.changed:
            taken, self._windows = self._windows, {n: Window() for n in self._windows}
            return taken
