"""The probe of an application that is only watched: reports, task metrics and offsets in, snapshots
out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql import SparkSession

from foretide.errors import NotReady
from foretide.model import Snapshot
from foretide.spark.attach.progress import BatchReport, Offsets, query_name
from foretide.spark.attach.queries import ClusterState, QueryState, WatchedQueries
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.jvm import ExecutorInfo, SparkJvm
from foretide.topology import Topology


class QueryCalls(Protocol):
    """What the probe asks Spark about a query: ``SparkJvm``, or a script in tests."""

    def latest_offsets(self, query: Any) -> Sequence[Offsets] | None: ...

    def trigger_s(self, query: Any) -> float | None: ...


class AttachedProbe:
    """Reads the queries of one application. ``begin`` opens the first window."""

    def __init__(
        self,
        spark: SparkSession,
        topology: Topology,
        queries: WatchedQueries,
        executors: ExecutorPool,
        idle: set[str],
        jvm: QueryCalls | None = None,
    ) -> None:
        self.spark = spark
        self.topology = topology
        self.queries = queries
        self.executors = executors
        self.idle = idle
        self._jvm = jvm or SparkJvm(spark)
        self._triggers: dict[str, float | None] = {}

    def begin(self, now: float) -> None:
        """Forget what happened before the first window."""
        self.queries.begin(now)
        self.executors.utilization(now)
        for query in self._active().values():
            self.executors.ended_jobs(query)

    def read(self, now: float) -> Snapshot:
        hosts = self.executors.utilization(now)
        active = self._active()
        if not active:
            raise NotReady("no streaming query is running: executors stay as they are")
        reported = self.queries.latest
        states = {
            name: self._state(query, reported.get(name))
            for name, query in active.items()
            if name in reported or str(query.id) not in self.idle
        }
        infos = self.executors.infos()
        cluster = ClusterState(
            self.executors.slots(),
            hosts or None,
            self.executors.lead_s(),
            lambda at: _slots_at(infos, at),
        )
        return self.queries.snapshot(self.topology, now, cluster, states)

    def _active(self) -> Mapping[str, Any]:
        return {query_name(q.name, str(q.id)): q for q in self.spark.streams.active}

    def _state(self, query: Any, latest: BatchReport | None) -> QueryState:
        if latest is None:
            return QueryState(self.executors.ended_jobs(query))
        status = query.status
        run = str(query.runId)
        if run not in self._triggers:
            self._triggers[run] = self._jvm.trigger_s(query)
        return QueryState(
            self.executors.ended_jobs(query),
            self._jvm.latest_offsets(query) if latest.partitions is not None else None,
            not status["isDataAvailable"] and not status["isTriggerActive"],
            self._triggers[run],
        )


def _slots_at(executors: list[ExecutorInfo], at: float) -> int:
    """Slots of the executors that live now and were there at an instant."""
    return sum(e.cores for e in executors if e.added_at <= at)
