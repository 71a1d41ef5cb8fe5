"""Executors: how busy each is, asking the cluster manager for more, giving some back after they are
drained, and how long it takes until one that was asked for works.

Totals sent to the cluster manager are absolute. The calls are the same for standalone, YARN and
Kubernetes; local mode has one executor, the driver, and nothing to ask for.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pyspark.sql import SparkSession

from foretide.errors import ActuationError
from foretide.model import Host
from foretide.spark.control.jvm import DRIVER, ExecutorInfo, JobInfo, SparkJvm
from foretide.spark.control.lead_time import LeadTimes, cluster_manager

log = logging.getLogger(__name__)


class ClusterCalls(Protocol):
    """What the pool needs of Spark: ``SparkJvm``, or a scripted cluster in tests."""

    @property
    def master(self) -> str: ...

    @property
    def started_at(self) -> float: ...

    def setting(self, key: str, default: str) -> str: ...

    def executors(self) -> list[ExecutorInfo]: ...

    def request_total(self, total: int) -> bool: ...

    def decommission(self, name: str) -> bool: ...

    def kill_if_idle(self, name: str) -> bool: ...

    def ended_jobs(self, run_id: str, after: int) -> list[JobInfo]: ...


class ExecutorPool:
    """The executors of one Spark application. ``calls`` defaults to the application's own JVM."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        lead_times: LeadTimes | None = None,
        calls: ClusterCalls | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        if calls is None:
            assert spark is not None, "give a session or the calls to a cluster"
            calls = SparkJvm(spark)
        self.calls = calls
        self._now = now
        self.manager = cluster_manager(calls.master)
        self.local = self.manager == "local"
        self.lead_times = lead_times or LeadTimes()
        self._cores = int(calls.setting("spark.executor.cores", "0"))
        self._drains = calls.setting("spark.decommission.enabled", "false") == "true"
        self._warned = False
        self._busy_s: dict[str, tuple[float, float]] = {}
        self._jobs_seen: dict[str, int] = {}
        self._releasing: set[str] = set()
        python = calls.setting("spark.executor.pyspark.memory", "")
        self._limits = {"memory_bytes": size_bytes(python)} if python else {}
        self._total: int | None = None

    def infos(self) -> list[ExecutorInfo]:
        """Live executors, also those being given back; in local mode the driver."""
        return [e for e in self.calls.executors() if (e.name == DRIVER) == self.local]

    @property
    def cores(self) -> int:
        """Cores of one executor: the setting, else those of the first one; 1 while there is
        none.
        """
        self._cores = self._cores or max((e.cores for e in self.infos()), default=0)
        return self._cores or 1

    def slots(self) -> int:
        """Tasks that can run at the same time on all executors; 1 while there is none."""
        return sum(e.cores for e in self.infos() if e.name not in self._releasing) or 1

    def live(self) -> tuple[str, ...]:
        """Executors that run, also those being given back; in local mode the driver."""
        return tuple(e.name for e in self.infos())

    def names(self) -> tuple[str, ...]:
        """Live executors that are not being given back."""
        return tuple(n for n in self.live() if n not in self._releasing)

    def locations(self, but: Sequence[str] = ()) -> dict[str, str]:
        """Spark's location of every live executor that is not being given back, by name."""
        names = [n for n in self.names() if n not in but]
        return {e.name: f"executor_{e.host}_{e.name}" for e in self.infos() if e.name in names}

    def wanted_for(self, slots: int) -> int:
        """Executors that hold this many slots.

        ``ceil(slots / cores per executor)``
        """
        return max(1, math.ceil(slots / self.cores))

    def lead_s(self) -> float | None:
        """Seconds from asking for an executor until it is registered: measured in this run, else
        remembered from earlier ones, else how long the application waited for its first executor.
        """
        if self.local:
            return None
        infos = self.infos()
        self.lead_times.observe(self.manager, [e.added_at for e in infos])
        known = self.lead_times.lead_s(self.manager)
        if known is None and infos:
            known = max(0.0, min(e.added_at for e in infos) - self.calls.started_at)
        return known

    def request(self, total: int, release: Sequence[str] = ()) -> None:
        """Have ``total`` executors: ask for the missing ones, drain and give back ``release``
        first, then the least busy.
        """
        if self.local:
            if not self._warned:
                log.warning("local mode has one executor, the driver: executors stay as they are")
                self._warned = True
            return
        try:
            running = self.names()
            going = [n for n in release if n in running]
            spare = [n for n in self._least_busy(running) if n not in going]
            while len(running) - len(going) > total and spare:
                going.append(spare.pop(0))
            if not self.calls.request_total(total):
                raise ActuationError(f"the cluster manager refused {total} executors")
            self._total = total
            if total > len(running):
                self.lead_times.asked(self._now(), total - len(running))
            for name in going:  # after the total, or the cluster manager would replace them
                if self._give_back(name):
                    self._releasing.add(name)
        except ActuationError:
            raise
        except Exception as error:
            raise ActuationError(
                f"the cluster manager could not be asked for {total} executors: {error}"
            ) from error

    def settle(self) -> None:
        """Give back what runs beyond the total last asked for: a standalone cluster starts as many
        executors as it has room for, and those on their way register after a smaller total; a busy
        one that could not be stopped may be idle now.
        """
        if self._total is not None and len(self.names()) > self._total:
            self.request(self._total)

    def raise_to(self, total: int) -> None:
        """Have at least ``total`` executors and give none back: for an application whose own
        dynamic allocation does that.
        """
        missing = total - len(self.live())
        if self.local or missing <= 0:
            return
        try:
            accepted = self.calls.request_total(total)
        except Exception as error:
            raise ActuationError(
                f"the cluster manager could not be asked for {total} executors: {error}"
            ) from error
        if not accepted:
            raise ActuationError(f"the cluster manager refused {total} executors")
        self.lead_times.asked(self._now(), missing)

    def _give_back(self, name: str) -> bool:
        """Where an application has decommissioning off, an idle executor is stopped and a busy one
        is left for the next time.
        """
        return self.calls.decommission(name) if self._drains else self.calls.kill_if_idle(name)

    def _least_busy(self, names: Sequence[str]) -> list[str]:
        return sorted(
            names,
            key=lambda n: (self._busy_s.get(n, (0.0, 0.0))[1], -int(n) if n.isdigit() else 0),
        )

    def utilization(self, now: float) -> tuple[Host, ...]:
        """Task seconds per core and second since the last call, per executor; only executors seen
        twice have a figure.
        """
        hosts, seen = [], {}
        for e in self.infos():
            before = self._busy_s.get(e.name)
            seen[e.name] = (now, e.task_s)
            if before is not None and now > before[0]:
                used = (e.task_s - before[1]) / (now - before[0])
                cores = max(e.cores, 1)
                utilization = max(0.0, used / cores)
                hosts.append(Host(e.name, utilization, float(cores), limits=self._limits))
        self._busy_s = seen
        return tuple(hosts)

    def ended_jobs(self, query: Any) -> list[JobInfo]:
        """Jobs of a query that ended since the last call."""
        run = str(query.runId)
        jobs = self.calls.ended_jobs(run, self._jobs_seen.get(run, -1))
        if jobs:
            self._jobs_seen[run] = jobs[-1].number
        return jobs

    def busy_s(self, query: Any) -> float | None:
        """Task seconds of a query's jobs since the last call, from Spark's own metrics; None when
        no job ended.
        """
        jobs = self.ended_jobs(query)
        return sum(job.task_s for job in jobs) if jobs else None


def size_bytes(text: str) -> float:
    """A size as Spark's settings write it; plain numbers are mebibytes.

    >>> size_bytes("512m"), size_bytes("2gb") == size_bytes("2048")
    (536870912.0, True)
    """
    units = {"": 20, "k": 10, "m": 20, "g": 30, "t": 40}
    number, unit = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)b?\s*", text.lower()).groups()  # type: ignore[union-attr]
    return float(int(number) << units[unit])
