"""The watched queries: reports of their micro-batches, collected as Spark sends them and given out
window by window as samples.

Nothing in the watched queries changes, so some figures are estimates, and the module that makes
them says which (``arrivals``).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from foretide.errors import NotReady
from foretide.model import BatchRun, Host, Sample, Snapshot, StageRun
from foretide.spark.attach.arrivals import QueryArrivals, latency_of, trigger_interval_s
from foretide.spark.attach.progress import BatchReport, Offsets
from foretide.spark.control.jvm import JobInfo, StageInfo
from foretide.topology import Topology

log = logging.getLogger(__name__)
Ages = list[tuple[float, float]]
SETTLE_S = 0.5
"""A batch is given out so long after its end: its task metrics reach Spark's store later than its
report.
"""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What the application has at the end of a window: slots over all executors (``slots_at`` for
    an instant of the past), how busy each executor is, the lead time of another one.
    """

    slots: int
    hosts: tuple[Host, ...] | None = None
    lead_s: float | None = None
    slots_at: Callable[[float], int] | None = None

    def slots_during(self, start: float, end: float) -> int | None:
        """Slots while a batch ran; None when their number changed meanwhile."""
        if self.slots_at is None:
            return self.slots
        before, after = self.slots_at(start), self.slots_at(end)
        return before if before == after and before > 0 else None


@dataclass(frozen=True, slots=True)
class QueryState:
    """What is known of one query at the end of a window beside its reports: jobs that ended in the
    window, the newest offsets of its sources, whether it waits for data, its trigger.
    """

    jobs: Sequence[JobInfo] = ()
    offsets: Sequence[Offsets] | None = None
    silent: bool = False
    trigger_s: float | None = None


@dataclass
class _Watched:
    """One run of one query."""

    latest: BatchReport
    arrivals: QueryArrivals = field(default_factory=QueryArrivals)
    ended: list[tuple[BatchReport, Ages]] = field(default_factory=list)
    recent: deque[BatchReport] = field(default_factory=lambda: deque(maxlen=30))
    jobs: list[JobInfo] = field(default_factory=list)

    def add(self, batch: BatchReport) -> None:
        if not batch.ran:
            self.arrivals.add(batch)
            return
        self.latest = batch
        self.ended.append((batch, self.arrivals.add(batch)))
        self.recent.append(batch)


class WatchedQueries:
    """Collects reports from any thread. ``changed`` is called when a query appears or goes;
    ``targets`` are latency targets of single queries.
    """

    def __init__(
        self,
        target_s: float | None = None,
        changed: Callable[[], None] = lambda: None,
        targets: Mapping[str, float] | None = None,
    ) -> None:
        self.target_s = target_s
        self.targets = targets or {}
        self.changed = changed
        self._queries: dict[str, _Watched] = {}
        self._lock = threading.Lock()
        self._window_from: float | None = None

    @property
    def latest(self) -> dict[str, BatchReport]:
        """The newest report of each query."""
        with self._lock:
            return {name: q.latest for name, q in self._queries.items()}

    def add(self, batch: BatchReport) -> None:
        """A batch has ended. A new run of a query under its old name starts anew."""
        with self._lock:
            known = self._queries.get(batch.query)
            if known is None and not batch.ran:
                return  # it counts from its first batch on
            if known is None or known.latest.run_id != batch.run_id:
                self._queries[batch.query] = _Watched(batch)
            watched = self._queries[batch.query]
            missed = batch.batch_id - watched.latest.batch_id - 1
            if missed > 0:
                log.warning(
                    "foretide: %d progress report(s) of query %s did not arrive: rates come from "
                    "its offsets, executors are not reduced because of it",
                    missed,
                    batch.query,
                )
            watched.add(batch)
        if known is None:
            self.changed()

    def forget(self, query: str, run_id: str) -> None:
        """This run of a query ended; a newer run of it stays."""
        with self._lock:
            known = self._queries.get(query)
            if known is None or known.latest.run_id != run_id:
                return
            del self._queries[query]
        self.changed()

    def begin(self, now: float) -> None:
        """Windows count from now: what ended before belongs to none, but its arrivals are known."""
        with self._lock:
            self._window_from = now
            for q in self._queries.values():
                q.ended = [(b, ages) for b, ages in q.ended if b.ended_at > now]
                q.jobs.clear()

    def snapshot(
        self,
        topology: Topology,
        now: float,
        cluster: ClusterState,
        states: Mapping[str, QueryState],
    ) -> Snapshot:
        """The window that ends now. Raises NotReady while a query at work has not ended a batch, or
        its rate is not known yet: executors may be the ones it works on.
        """
        with self._lock:
            start, self._window_from = self._window_from, now
            if start is None or now <= start:
                raise NotReady("the first window has just begun")
            queries = dict(self._queries)
            missing = [n for n in dict.fromkeys((*topology.names, *states)) if n not in queries]
            for name, state in states.items():
                if name in queries:
                    self._update(queries[name], state, now)
            if missing:
                raise NotReady(
                    f"no batch of {', '.join(missing)} was reported yet: executors stay until its "
                    "first one ends"
                )
            unknown = [n for n in topology.names if not queries[n].arrivals.known]
            if unknown:
                raise NotReady(
                    f"the rate of {', '.join(unknown)} is known after its second batch: executors "
                    "stay until then"
                )
            samples = {}
            leaving: Ages = []
            within = 0.0
            for name in topology.names:
                samples[name], ages = self._sample(
                    queries[name],
                    (start, now),
                    cluster,
                    states.get(name, QueryState()),
                    name in topology.sources,
                )
                latency = samples[name].latency
                if name in topology.sinks and latency is not None:
                    leaving += ages
                    within += latency.within or 0.0
        end_to_end = latency_of(leaving, self.target_s, mergeable=True)
        if end_to_end is not None and end_to_end.within is not None:
            end_to_end = replace(end_to_end, within=within)
        return Snapshot(
            now,
            now - start,
            samples,
            cluster.hosts,
            end_to_end,
            cluster.lead_s,
            cluster.slots,
        )

    @staticmethod
    def _update(query: _Watched, state: QueryState, now: float) -> None:
        query.jobs.extend(state.jobs)
        if state.offsets is not None:
            query.arrivals.polled(now, state.offsets)
        elif state.silent and query.arrivals.known:
            query.arrivals.silent(now)

    def _sample(
        self,
        query: _Watched,
        window: tuple[float, float],
        cluster: ClusterState,
        state: QueryState,
        is_source: bool,
    ) -> tuple[Sample, Ages]:
        start, now = window
        ended = [(b, ages) for b, ages in query.ended if b.ended_at <= now - SETTLE_S]
        query.ended = query.ended[len(ended) :]
        ages = [a for _, of_batch in ended for a in of_batch]
        runs, busy_s = [], 0.0
        for batch, _ in ended:
            stages = _stages_of(batch, query.jobs)
            busy_s += sum(s.task_s for s in stages)
            slots = cluster.slots_during(batch.started_at, batch.ended_at)
            runs.append(
                BatchRun(
                    batch.started_at,
                    batch.duration_s,
                    batch.events,
                    slots,
                    exclusive(stages),
                    batch.left,
                )
            )
        if ended:
            done_at = ended[-1][0].ended_at
            query.jobs = [j for j in query.jobs if j.submitted_at >= done_at]
        arrived = query.arrivals.between(start, now)
        trigger_s = state.trigger_s
        return Sample(
            arrived=arrived,
            processed=sum(b.events for b, _ in ended),
            backlog=query.arrivals.backlog(now),
            replicas=cluster.slots,
            busy_s=busy_s,
            offered=arrived if is_source else None,
            latency=latency_of(ages, self.targets.get(query.latest.query, self.target_s)),
            batches=float(len(ended)),
            batch_s=sum(b.duration_s for b, _ in ended) / len(ended) if ended else None,
            max_parallelism=query.latest.partitions,
            batch_runs=tuple(runs),
            trigger_s=trigger_interval_s(query.recent) if trigger_s is None else trigger_s,
            state_rows=query.latest.state_rows,
            state_bytes=query.latest.state_bytes,
            watermark_at=query.latest.watermark_at,
        ), ages


def _stages_of(batch: BatchReport, jobs: Sequence[JobInfo]) -> list[StageInfo]:
    """Stages of the jobs that ran while the batch did, in the order in which they started."""
    inside = [j for j in jobs if batch.started_at <= j.submitted_at <= batch.ended_at]
    return sorted((s for j in inside for s in j.stages), key=lambda s: s.submitted_at)


def exclusive(stages: Sequence[StageInfo]) -> tuple[StageRun, ...]:
    """Stages with the seconds that the batch waited for each: time in which an earlier stage still
    ran belongs to that one, so that the seconds of all stages add up.

    >>> exclusive([StageInfo(8, 4.0, 10.0, 12.0), StageInfo(2, 1.0, 11.0, 13.0)])
    (StageRun(tasks=8, task_s=4.0, wall_s=2.0), StageRun(tasks=2, task_s=1.0, wall_s=1.0))
    """
    runs, until = [], 0.0
    for stage in stages:
        wall_s = max(0.0, stage.completed_at - max(stage.submitted_at, until))
        runs.append(StageRun(stage.tasks, stage.task_s, wall_s))
        until = max(until, stage.completed_at)
    return tuple(runs)
