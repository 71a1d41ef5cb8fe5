"""The probe: what a running pipeline did since the last read, as a Snapshot.

Counts are of batches delivered in the window; backlogs are exact at the moment of the read. A
function per event knows its busy time from its own tasks; a DataFrame function from Spark's task
metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from foretide.errors import NotReady
from foretide.model import Host, Latency, Sample, Snapshot
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.run.accounts import Window
from foretide.spark.run.running import Running
from foretide.spark.worker.stamps import latency


class PipelineProbe:
    """Reads one running pipeline. The first read only opens the first window."""

    def __init__(
        self, running: Running, executors: ExecutorPool, target_latency_s: float | None = None
    ) -> None:
        self.running = running
        self.executors = executors
        self.target_latency_s = target_latency_s
        self._last_at: float | None = None
        self._arrivals: dict[str, tuple[int, int]] = {}

    def read(self, now: float) -> Snapshot:
        self.running.check()
        last_at, self._last_at = self._last_at, now
        lags = {n: self.running.lag(n) for n in self.running.topology.names}
        with self.running.accounts.changed:
            windows = self.running.accounts.take()
            arrivals = {n: self.running.accounts.arrivals(n, now, lags[n]) for n in windows}
            waiting = {n: sum(arrivals[n]) - self.running.accounts.consumed(n) for n in windows}
        before = dict(self._arrivals)
        # What waits in a source that is not ours can be told twice for a moment; what was counted
        # once is not counted again.
        for n, found in arrivals.items():
            inside, outside = before.get(n, (0, 0))
            self._arrivals[n] = max(found[0], inside), max(found[1], outside)
        hosts = self.executors.utilization(now)
        first = last_at is None or now <= last_at
        task_s = {n: self._task_s(n) for n, window in windows.items() if first or window.deliveries}
        if last_at is None or now <= last_at:
            raise NotReady("the pipeline has just started: the first window is not over")
        samples = {}
        for n, window in windows.items():
            inside, outside = (a - b for a, b in zip(self._arrivals[n], before[n], strict=True))
            samples[n] = self._sample(n, window, waiting[n], (inside, outside), task_s.get(n))
        return Snapshot(
            now, now - last_at, samples, loaded(hosts, samples), self._end_to_end(windows)
        )

    def _task_s(self, name: str) -> float | None:
        """Task seconds of a DataFrame function since the last call; those of a batch not delivered
        yet wait for the next one.
        """
        query = self.running.queries[name]
        return (
            self.executors.busy_s(query.query)
            if query.wired.step.kind == "frame" and query.query is not None
            else None
        )

    def _sample(
        self, name: str, window: Window, waiting: int, came: tuple[int, int], task_s: float | None
    ) -> Sample:
        query = self.running.queries[name]
        replicas = query.in_flight or self.running.replicas[name]
        by_replica = window.by_replica(replicas)
        return Sample(
            arrived=float(sum(came)),
            processed=float(window.processed),
            backlog=float(max(0, waiting)),
            replicas=replicas,
            emitted={
                c: float(window.emitted(f"to.{c}")) for c in self.running.topology.successors(name)
            },
            busy_s=task_s if window.busy_s is None else window.busy_s,
            offered=float(came[1]) if query.wired.sources else None,
            dropped=float(window.diverted) if query.wired.diverts else None,
            sojourn_s=window.sojourn_s,
            latency=latency(*window.ages(), self.target_latency_s),
            replica_busy_s=by_replica[0] if by_replica else None,
            replica_processed=by_replica[1] if by_replica else None,
            scv_service=window.scv_service,
            batches=float(sum(1 for b in window.deliveries if b.events)),
            batch_s=window.batch_s,
        )

    def _end_to_end(self, windows: dict[str, Window]) -> Latency | None:
        """Age of the events that left: those done at operators that feed nobody else."""
        parts = [windows[n].ages() for n in self.running.topology.sinks]
        ages = [a for groups, _, _ in parts for a in groups]
        counts = [c for _, found, _ in parts for c in found]
        total_s = sum(total for _, _, total in parts)
        return latency(ages, counts, total_s, self.target_latency_s, mergeable=True)


def loaded(hosts: Sequence[Host], samples: Mapping[str, Sample]) -> tuple[Host, ...]:
    """Hosts with the cores each operator uses on them: an estimate, since Spark spreads the tasks
    of all operators over all executors.

    A host's used cores are divided in proportion to the operators' busy times.
    """
    busy_s = {n: s.busy_s or 0.0 for n, s in samples.items()}
    total = sum(busy_s.values())
    if not total:
        return tuple(hosts)
    return tuple(
        replace(h, loads={n: h.utilization * h.capacity * b / total for n, b in busy_s.items()})
        for h in hosts
    )
