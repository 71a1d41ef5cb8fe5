"""The ledger: what every operator did, as batches were delivered; the probe takes a window's worth
at a time.

Totals come from the manifests and are exact across restarts; busy times and latencies of a window
live only here. Pure bookkeeping under one lock; it knows no Spark and no clock.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from foretide.model import Array
from foretide.spark.edge.edges import Manifest
from foretide.spark.worker.meter import Report

MOST = 2000
"""Batches that a window holds at most: where nobody reads windows, the newest."""


@dataclass(frozen=True)
class Batch:
    """One delivered batch. ``waited_s`` sums over its events the time from their delivery here to
    now; ``grouping_s`` is what tasks spent on assigning events and on learning from them;
    ``took_s`` is from Spark's start of the batch to its delivery."""

    manifest: Manifest
    consumed: Mapping[str, int]
    delivered: Mapping[str, int]
    reports: Sequence[Report] = ()
    busy_s: float | None = None
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

    batches: list[Batch] = field(default_factory=list)

    @property
    def processed(self) -> int:
        return sum(b.events for b in self.batches)

    @property
    def busy_s(self) -> float | None:
        """Busy seconds; None when no batch of the window could measure any."""
        known = [b.busy_s for b in self.batches if b.busy_s is not None]
        known += [r.busy_s for b in self.batches for r in b.reports]
        return sum(known) if known else None

    @property
    def sojourn_s(self) -> float | None:
        """Mean seconds from an event's delivery to its end here; None when no batch of the window
        could tell.
        """
        known = [(b.waited_s, b.events) for b in self.batches if b.waited_s is not None]
        events = sum(n for _, n in known)
        return max(0.0, sum(s for s, _ in known)) / events if events else None

    @property
    def batch_s(self) -> float | None:
        """Mean seconds of the batches that had events."""
        took_s = [b.took_s for b in self.batches if b.events]
        return sum(took_s) / len(took_s) if took_s else None

    @property
    def diverted(self) -> int:
        return sum(r.diverted for b in self.batches for r in b.reports)

    def by_replica(self, replicas: int) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """(busy seconds, events) per replica, in order of their ids; None when nothing was measured
        per replica.
        """
        reports = [r for b in self.batches for r in b.reports]
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
        n = sum(r.sampled for b in self.batches for r in b.reports)
        mean = sum(r.time_s for b in self.batches for r in b.reports) / max(n, 1)
        if n < 10 or mean <= 0:
            return None
        square = sum(r.time_squared for b in self.batches for r in b.reports) / n
        return max(0.0, square / mean**2 - 1.0)

    def emitted(self, folder: str) -> int:
        return sum(b.delivered.get(folder, 0) for b in self.batches)

    def ages(self) -> tuple[list[Array], list[float], float]:
        """(ages in seconds per group, events each group stands for, sum of all ages) when the
        events were done here.
        """
        groups: list[Array] = []
        counts: list[float] = []
        total = 0.0
        for b in self.batches:
            at = b.manifest.at
            parts = [(r.stamps, float(r.processed), r.stamp_sum) for r in b.reports]
            if b.latency_of is not None:
                parts.append(b.latency_of)
            for stamps, count, stamp_sum in parts:
                groups.append(at - stamps)
                counts.append(count)
                total += at * count - stamp_sum
        return groups, counts, total


class Ledger:
    """All operators' totals and the batches of the current window."""

    def __init__(self, manifests: Mapping[str, Manifest | None]) -> None:
        self.changed = threading.Condition()
        self._latest = {n: m or Manifest(-1, 0.0, 0) for n, m in manifests.items()}
        self._windows = {n: Window() for n in manifests}

    def latest(self, name: str) -> Manifest:
        """Totals of an operator: its newest manifest, an empty one before its first batch."""
        with self.changed:
            return self._latest[name]

    def add(self, name: str, batch: Batch) -> None:
        with self.changed:
            self._latest[name] = batch.manifest
            batches = self._windows[name].batches
            batches.append(batch)
            del batches[:-MOST]
            self.changed.notify_all()

    def delivered(self, producer: str, consumer: str) -> int:
        """Events that an edge ever carried."""
        with self.changed:
            return self._latest[producer].delivered.get(f"to.{consumer}", 0)

    def backlog(self, producer: str, consumer: str) -> int:
        """Events delivered on an edge that its consumer is not done with: exact."""
        with self.changed:
            carried = self._latest[producer].delivered.get(f"to.{consumer}", 0)
            return carried - self._latest[consumer].consumed.get(producer, 0)

    def take(self) -> dict[str, Window]:
        """The batches since the last take; the next window starts empty."""
        with self.changed:
            taken, self._windows = self._windows, {n: Window() for n in self._windows}
            return taken
