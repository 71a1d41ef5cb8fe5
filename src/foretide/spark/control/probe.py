"""The probe: what a running pipeline did since the last read, as a Snapshot.

Arrivals come from the sources' offsets and from what producers delivered, whether or not a batch
took them. A batch that still runs counts with what its tasks have done so far; backlogs include the
rest of it. A function per event knows its busy time from its own tasks; a DataFrame function from
Spark's task metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from foretide.errors import NotReady
from foretide.model import Host, Latency, Sample, Snapshot
from foretide.quantities import sojourn_sum_s
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.run.accounts import Use, Window
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
        accounts = self.running.accounts
        outside = {n: accounts.outside(n, now) for n in self.running.topology.names}
        if unknown := [n for n, count in outside.items() if count is None]:
            raise NotReady(
                f"operator '{unknown[0]}': its first batch still runs, and its source does not say "
                "how many events it holds"
            )
        last_at, self._last_at = self._last_at, now
        with accounts.changed:
            windows = accounts.take()
            arrivals = {n: (accounts.inside(n), outside[n] or 0) for n in windows}
            waiting = {n: sum(arrivals[n]) - accounts.done(n) for n in windows}
        before = dict(self._arrivals)
        # An estimate can be too high for a moment: what was counted once is not counted again.
        for n, counts in arrivals.items():
            inside, from_outside = before.get(n, (0, 0))
            self._arrivals[n] = max(counts[0], inside), max(counts[1], from_outside)
        hosts = self.executors.utilization(now)
        first = last_at is None or now <= last_at
        task_s = {n: self._task_s(n) for n, window in windows.items() if first or window.processed}
        if last_at is None or now <= last_at:
            raise NotReady("the pipeline has just started: the first window is not over")
        samples = {}
        for n, window in windows.items():
            came = (self._arrivals[n][0] - before[n][0], self._arrivals[n][1] - before[n][1])
            samples[n] = self._sample(n, window, waiting[n], came, task_s.get(n))
        slots, span_s = self.executors.slots(), now - last_at
        return Snapshot(
            now,
            span_s,
            samples,
            loaded(hosts, samples, {n: w.by_executor() for n, w in windows.items()}, span_s),
            self._end_to_end(windows),
            self._lead_s(samples, span_s, slots),
            slots,
            self.running.placement.moves(),
            trees.take(self.target_latency_s) if (trees := self.running.trees) else None,
            sojourn_sum_s(samples),
        )

    def _lead_s(self, samples: Mapping[str, Sample], window_s: float, slots: int) -> float | None:
        """Seconds until a replica asked for now works: from the next micro-batch on while slots are
        free, else when another executor is there.
        """
        free = slots - sum(s.replicas for s in samples.values())
        if not self.executors.local and free <= 0:
            return self.executors.lead_s()
        between_s = [window_s / s.batches for s in samples.values() if s.batches]
        return max(between_s, default=None)

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
        by_replica, state = window.by_replica(replicas), query.kept_state()
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
            scv_arrival=window.scv_arrival,
            scv_service=window.scv_service,
            batches=float(sum(1 for b in window.deliveries if b.events)),
            batch_s=window.batch_s,
            fixed_s=window.fixed_s,
            max_parallelism=self.running.max_parallelism(name),
            state_rows=state.rows if state else None,
            state_bytes=state.bytes if state else None,
            watermark_at=state.watermark_at if state else None,
            phases=window.phases,
            trigger_s=self.running.pipeline.trigger_s if query.wired.sources else None,
        )

    def _end_to_end(self, windows: dict[str, Window]) -> Latency | None:
        """Age of the events that left: those done at operators that feed nobody else."""
        parts = [windows[n].ages() for n in self.running.topology.sinks]
        ages = [a for groups, _, _ in parts for a in groups]
        counts = [c for _, found, _ in parts for c in found]
        total_s = sum(total for _, _, total in parts)
        return latency(ages, counts, total_s, self.target_latency_s, mergeable=True)


def loaded(
    hosts: Sequence[Host],
    samples: Mapping[str, Sample],
    used: Mapping[str, Mapping[str, Use]],
    window_s: float,
) -> tuple[Host, ...]:
    """Hosts with the cores, the memory and the traffic of each operator on them, from the tasks
    that ran there. Where tasks do not say that (a DataFrame function) the cores are an estimate: a
    share of the host's used cores in proportion to the operators' busy times.
    """
    vague = {n: s.busy_s or 0.0 for n, s in samples.items() if not used.get(n)}
    total = sum(s.busy_s or 0.0 for s in samples.values())
    placed = []
    for h in hosts:
        here = {n: on[h.name] for n, on in used.items() if h.name in on}
        loads = {n: u.busy_s / window_s for n, u in here.items() if u.busy_s > 0.0}
        cores = h.utilization * h.capacity
        loads |= {n: cores * b / total for n, b in vague.items() if b > 0.0}
        uses = {
            "memory_bytes": {n: u.memory_bytes for n, u in here.items()},
            "network_bytes_s": {n: u.moved_bytes / window_s for n, u in here.items()},
        }
        placed.append(replace(h, loads=loads, uses=uses if here else {}))
    return tuple(placed)
