"""Executors: how busy each is, asking the cluster manager for more, giving some back after they are
drained.

Totals sent to the cluster manager are absolute. The calls are the same for standalone, YARN and
Kubernetes; local mode has one executor, the driver, and nothing to ask for.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from foretide.errors import ActuationError
from foretide.model import Host

log = logging.getLogger(__name__)
DRIVER = "driver"


class Executors:
    """The executors of one Spark application."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        context = spark.sparkContext
        self.local = str(context.master).startswith("local") and not str(context.master).startswith(
            "local-cluster"
        )
        self._cores = int(context.getConf().get("spark.executor.cores", "0") or 0)
        self._drains = context.getConf().get("spark.decommission.enabled", "false") == "true"
        self._told = False
        self._busy_ms: dict[str, tuple[float, float]] = {}
        self._jobs_seen: dict[str, int] = {}
        self._releasing: set[str] = set()

    @property
    def _context(self) -> Any:
        return self.spark.sparkContext._jsc.sc()

    def _live(self) -> list[Any]:
        found = self._context.statusStore().executorList(True)
        return [
            e
            for e in (found.apply(i) for i in range(found.size()))
            if (e.id() == DRIVER) == self.local
        ]

    @property
    def cores(self) -> int:
        """Of one executor: what the settings say, else what the first one has; 1 while there is
        none.
        """
        self._cores = self._cores or max((int(e.totalCores()) for e in self._live()), default=0)
        return self._cores or 1

    def slots(self) -> int:
        """Tasks that can run at the same time on all executors; 1 while there is none."""
        return sum(int(e.totalCores()) for e in self._live() if e.id() not in self._releasing) or 1

    def live(self) -> tuple[str, ...]:
        """Executors that run, also those being given back; in local mode the driver."""
        return tuple(e.id() for e in self._live())

    def names(self) -> tuple[str, ...]:
        """Live executors that are not being given back."""
        return tuple(n for n in self.live() if n not in self._releasing)

    def wanted_for(self, slots: int) -> int:
        """Executors that hold this many slots.

        ``ceil(slots / cores per executor)``
        """
        return max(1, math.ceil(slots / self.cores))

    def request(self, total: int, release: Sequence[str] = ()) -> None:
        """Have ``total`` executors: ask for the missing ones, drain and give back ``release``
        first, then the least busy.
        """
        if self.local:
            if not self._told:
                log.warning("local mode has one executor, the driver: executors stay as they are")
                self._told = True
            return
        try:
            running = self.names()
            going = [n for n in release if n in running]
            spare = [n for n in self._least_busy(running) if n not in going]
            while len(running) - len(going) > total and spare:
                going.append(spare.pop(0))
            no_hosts = self._scala("scala.collection.immutable.Map").empty()
            if not self._context.requestTotalExecutors(total, 0, no_hosts):
                raise ActuationError(f"the cluster manager refused {total} executors")
            for name in going:  # after the total, or the cluster manager would replace them
                self._drain(name)
        except ActuationError:
            raise
        except Exception as error:
            raise ActuationError(
                f"the cluster manager could not be asked for {total} executors: {error}"
            ) from error

    def _drain(self, name: str) -> None:
        """No new task goes there; it exits by itself when its tasks are done and its shuffle blocks
        have moved.

        Where an application has decommissioning off, an idle executor is taken and a busy one is
        left for the next time.
        """
        jvm: Any = self.spark.sparkContext._jvm
        if not self._drains:
            one = jvm.PythonUtils.toSeq([name])
            if (
                not self._context.schedulerBackend()
                .killExecutors(one, False, False, False)
                .isEmpty()
            ):
                self._releasing.add(name)
            return
        info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "given back by foretide", self._scala("scala.None")
        )
        if self._context.schedulerBackend().decommissionExecutor(name, info, False, False):
            self._releasing.add(name)

    def _scala(self, name: str) -> Any:
        """A Scala object (not a class) by its full name."""
        found: Any = self.spark.sparkContext._jvm
        for part in f"{name}$".split("."):
            found = getattr(found, part)
        return getattr(found, "MODULE$")

    def _least_busy(self, names: Sequence[str]) -> list[str]:
        return sorted(
            names,
            key=lambda n: (self._busy_ms.get(n, (0.0, 0.0))[1], -int(n) if n.isdigit() else 0),
        )

    def utilization(self, now: float) -> tuple[Host, ...]:
        """Task seconds per core and second since the last call, per executor; only executors seen
        twice have a figure.
        """
        hosts, seen = [], {}
        for e in self._live():
            name, total_ms, cores = e.id(), self._task_ms(e), int(e.totalCores())
            before = self._busy_ms.get(name)
            seen[name] = (now, total_ms)
            if before is not None and now > before[0]:
                used = (total_ms - before[1]) / 1e3 / (now - before[0])
                hosts.append(Host(name, max(0.0, used / max(cores, 1)), float(max(cores, 1))))
        self._busy_ms = seen
        return tuple(hosts)

    def _task_ms(self, executor: Any) -> float:
        """Task milliseconds so far. Of the driver Spark's list tells how long it has been up; what
        it ran is in the store behind it.
        """
        if executor.id() != DRIVER:
            return float(executor.totalDuration())
        jvm: Any = self.spark.sparkContext._jvm
        kind = jvm.java.lang.Class.forName("org.apache.spark.status.ExecutorSummaryWrapper")
        return float(self._context.statusStore().store().read(kind, DRIVER).info().totalDuration())

    def busy_s(self, query: StreamingQuery) -> float | None:
        """Task seconds of a query's jobs since the last call, from Spark's own metrics; None when
        no job ended.
        """
        run = str(query.runId)
        tracker = self.spark.sparkContext.statusTracker()
        last = self._jobs_seen.get(run, -1)
        jobs = sorted(j for j in tracker.getJobIdsForGroup(run) if j > last)
        total_ms, ended = 0.0, False
        for job in jobs:
            info = tracker.getJobInfo(job)
            if info is None or info.status == "RUNNING":
                break
            self._jobs_seen[run], ended = job, True
            total_ms += sum(self._stage_ms(stage) for stage in info.stageIds)
        return total_ms / 1e3 if ended else None

    def _stage_ms(self, stage: int) -> float:
        try:
            return float(self._context.statusStore().lastStageAttempt(stage).executorRunTime())
        except (
            Exception
        ) as error:  # a stage that was skipped, or is already forgotten, has no metrics
            if not re.search("NoSuchElement", str(error)):
                raise
            return 0.0
