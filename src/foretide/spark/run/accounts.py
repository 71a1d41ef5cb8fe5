"""The accounts of a running pipeline: what arrived at every operator, what it has done, what waits.

Totals come from the manifests and are exact across restarts; busy times and latencies of a window
are kept only here. Pure bookkeeping under one lock; it knows no Spark and no clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from foretide.model import Array
from foretide.spark.edge.protocol import Manifest
from foretide.spark.run.gaps import NO_GAPS, Gaps, scv
from foretide.spark.worker.meter import Progress, Report

MOST = 2000
"""Deliveries that a window keeps at most, the newest ones, where nothing reads windows."""


@dataclass(frozen=True)
class Delivery:
    """One delivered batch. ``waited_s`` sums over its events the time from their delivery here to
    now; ``grouping_s`` is what tasks spent on assigning events and on learning from them;
    ``took_s`` is from Spark's start of the batch to its delivery; ``gaps`` are the times between
    its events' arrivals; ``phases`` are those of the grouping in which its pieces ran, and
    ``longest_s`` the busy seconds of each piece's slowest task, empty where not measured.
    """

    manifest: Manifest
    consumed: Mapping[str, int]
    delivered: Mapping[str, int]
    reports: Sequence[Report] = ()
    waited_s: float | None = None
    latency_of: tuple[Array, float, float] | None = None
    grouping_s: float = 0.0
    took_s: float = 0.0
    gaps: Gaps = NO_GAPS
    phases: tuple[str, ...] = ()
    longest_s: tuple[float, ...] = ()

    @property
    def events(self) -> int:
        return sum(self.consumed.values())


@dataclass(frozen=True)
class Partial:
    """What a batch that still runs has done so far; ``late`` of its events were dropped. Empty
    ``by_replica``: tasks do not report. ``emitted`` counts finished pieces of the batch.
    """

    events: int = 0
    by_replica: Mapping[int, Progress] = field(default_factory=dict)
    emitted: Mapping[str, int] = field(default_factory=dict)
    late: int = 0

    @property
    def processed(self) -> int:
        return self.events - self.late


NOTHING = Partial()


@dataclass(frozen=True)
class Use:
    """What an operator took of one executor in a window: task seconds, the most memory that its
    Python workers held at once, and the size of the events that they took and gave.
    """

    busy_s: float = 0.0
    memory_bytes: float = 0.0
    moved_bytes: float = 0.0


@dataclass
class Window:
    """An operator between two reads. A batch that runs at the end of a window counts there with
    what it has done so far (``partial``), which the window of its delivery leaves out
    (``counted``).
    """

    deliveries: list[Delivery] = field(default_factory=list)
    partial: Partial = NOTHING
    counted: Partial = NOTHING

    @property
    def processed(self) -> int:
        done = sum(b.events for b in self.deliveries) - self.late
        return max(0, done + self.partial.processed - self.counted.processed)

    @property
    def late(self) -> int:
        """Events that were dropped unprocessed."""
        return sum(r.late for b in self.deliveries for r in b.reports)

    @property
    def busy_s(self) -> float | None:
        """Busy seconds; None when no batch of the window could measure any."""
        known = self._by_replica()
        return max(0.0, sum(p.busy_s for p in known.values())) if known else None

    def _by_replica(self) -> dict[int, Progress]:
        """Work per replica in this window; empty when none was measured."""
        done: dict[int, Progress] = {}
        parts = [(r.replica, r.processed, r.busy_s) for b in self.deliveries for r in b.reports]
        parts += [(i, p.processed, p.busy_s) for i, p in self.partial.by_replica.items()]
        if parts:
            parts += [(i, -p.processed, -p.busy_s) for i, p in self.counted.by_replica.items()]
        for replica, processed, busy_s in parts:
            before = done.get(replica, Progress(0, 0.0))
            done[replica] = Progress(before.processed + processed, before.busy_s + busy_s)
        return done

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
    def fixed_s(self) -> float | None:
        """Mean seconds of a piece of a batch beyond its slowest task; None when not measured."""
        known = [b for b in self.deliveries if b.events and b.longest_s]
        pieces = sum(len(b.longest_s) for b in known)
        return (
            sum(max(0.0, b.took_s - sum(b.longest_s)) for b in known) / pieces if pieces else None
        )

    @property
    def phases(self) -> tuple[str, ...]:
        """The grouping's phases one after another, each once while it lasts."""
        return tuple(p for p, _ in groupby(p for b in self.deliveries for p in b.phases))

    @property
    def diverted(self) -> int:
        return sum(r.diverted for b in self.deliveries for r in b.reports)

    def by_replica(self, replicas: int) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """(busy seconds, events) per replica, in order of their ids; None when nothing was measured
        per replica.
        """
        known = self._by_replica()
        if not known:
            return None
        size = max(replicas, max(known) + 1)
        shares = [known.get(i, Progress(0, 0.0)) for i in range(size)]
        busy_s = tuple(max(0.0, s.busy_s) for s in shares)
        return busy_s, tuple(max(0.0, float(s.processed)) for s in shares)

    def by_executor(self) -> dict[str, Use]:
        """What the operator took of every executor, of the replicas that know where they ran."""
        uses: dict[str, Use] = {}
        for delivery in self.deliveries:
            together: dict[str, float] = {}
            for r in delivery.reports:
                if r.executor is not None:
                    before = uses.get(r.executor, Use())
                    together[r.executor] = together.get(r.executor, 0.0) + r.memory_bytes
                    uses[r.executor] = Use(
                        before.busy_s + r.busy_s,
                        max(before.memory_bytes, together[r.executor]),
                        before.moved_bytes + r.moved_bytes,
                    )
        return uses

    @property
    def scv_service(self) -> float | None:
        """Variance over squared mean of the sampled service times; None below ten samples."""
        n = sum(r.sampled for b in self.deliveries for r in b.reports)
        mean = sum(r.time_s for b in self.deliveries for r in b.reports) / max(n, 1)
        if n < 10 or mean <= 0:
            return None
        square = sum(r.time_squared for b in self.deliveries for r in b.reports) / n
        return max(0.0, square / mean**2 - 1.0)

    @property
    def scv_arrival(self) -> float | None:
        """Squared variation of the times between arrivals; None below ten of them."""
        return scv([b.gaps for b in self.deliveries])

    def emitted(self, folder: str) -> int:
        done = sum(b.delivered.get(folder, 0) for b in self.deliveries)
        done += self.partial.emitted.get(folder, 0) - self.counted.emitted.get(folder, 0)
        return max(0, done)

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
    """Where an operator's events come from: operators, and sources outside the pipeline.
    ``outside`` returns the events that ever arrived from there, None when that is unknown;
    ``totals`` are those of generated loads.
    """

    producers: tuple[str, ...] = ()
    outside: Callable[[Manifest, float], int | None] = lambda latest, at: 0
    totals: Mapping[str, int] = field(default_factory=dict)


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
        self._running: dict[str, Callable[[], Partial]] = {}
        self._counted: dict[str, Partial] = {}

    def latest(self, name: str) -> Manifest:
        """Totals of an operator: its newest manifest, an empty one before its first batch."""
        with self.changed:
            return self._latest[name]

    def begin(self, name: str, progress: Callable[[], Partial]) -> None:
        """A batch of an operator runs now; ``progress`` returns what it has done so far."""
        with self.changed:
            self._running[name] = progress

    def add(self, name: str, delivery: Delivery) -> None:
        self._on_delivery(name, delivery)
        with self.changed:
            self._running.pop(name, None)
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
        """Events of delivered batches that an operator ever took."""
        return sum(self.latest(name).consumed.values())

    def done(self, name: str) -> int:
        """Events that an operator ever finished, in the running batch too."""
        with self.changed:
            return self.consumed(name) + self._partial(name).events

    def _partial(self, name: str) -> Partial:
        return self._running[name]() if name in self._running else NOTHING

    def inside(self, name: str) -> int:
        """Events that operators ever sent to an operator."""
        with self.changed:
            return sum(self.carried(p, name) for p in self._of(name).producers)

    def outside(self, name: str, at: float) -> int | None:
        """Events that ever arrived at an operator from outside by ``at``; None when that is
        unknown. It may ask a broker or list a folder, so it does not hold the lock.
        """
        return self._of(name).outside(self.latest(name), at)

    def _of(self, name: str) -> Inputs:
        return self._inputs.get(name, Inputs())

    def backlog(self, name: str, at: float) -> int | None:
        """Events that arrived at an operator and are not done, those of the running batch included;
        None when it is unknown what arrived.
        """
        with self.changed:
            outside = self.outside(name, at)
            return (
                None if outside is None else max(0, self.inside(name) + outside - self.done(name))
            )

    def idle(self, at: float) -> bool:
        """Whether nothing waits anywhere and every generated load has come to its end. Events of a
        batch that still runs are not delivered yet, so they count as waiting.
        """
        with self.changed:  # or an event could move on between two of these looks
            for name, inputs in self._inputs.items():
                done = self._latest[name].consumed
                if any(done.get(source, 0) < n for source, n in inputs.totals.items()):
                    return False
            arrived = {n: self.outside(n, at) for n in self._latest}
            return all(
                came is not None and came + self.inside(n) <= self.consumed(n)
                for n, came in arrived.items()
            )

    def take(self) -> dict[str, Window]:
        """The deliveries since the last call; the next window starts empty."""
        with self.changed:
            taken, self._windows = self._windows, {n: Window() for n in self._windows}
            for name, window in taken.items():
                window.counted = self._counted.pop(name, NOTHING)
                window.partial = self._counted[name] = self._partial(name)
            return taken
