"""The one seam to Spark's JVM that is not public API: executors, task metrics of jobs, newest
offsets of Kafka sources, gauges of Spark's metrics system.

Everything here returns plain records and is called by nothing else than ``ExecutorPool`` and the
attached probe, so that a new Spark version is checked in one file. Seen to work from Spark 3.5 to
4.3; Spark Connect has no JVM in the application's process and is refused with one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from foretide.errors import InvalidConfig

DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class ExecutorInfo:
    """One executor as Spark's status store lists it; ``task_s`` are task seconds since its
    start.
    """

    name: str
    cores: int
    task_s: float
    added_at: float
    host: str = ""


@dataclass(frozen=True, slots=True)
class StageInfo:
    """One stage of a job that has ended: its tasks, their seconds in all, and when it ran."""

    tasks: int
    task_s: float
    submitted_at: float
    completed_at: float


@dataclass(frozen=True, slots=True)
class JobInfo:
    """One ended job of a query. Stages that were skipped or are already forgotten are left out."""

    number: int
    submitted_at: float
    stages: tuple[StageInfo, ...]

    @property
    def task_s(self) -> float:
        return sum(stage.task_s for stage in self.stages)


class SparkJvm:
    """The JVM of one classic Spark application."""

    def __init__(self, spark: SparkSession) -> None:
        if "connect" in type(spark).__module__.split("."):
            raise InvalidConfig(
                "this is a Spark Connect session: Foretide needs the driver's own process "
                "(classic mode); run it where the driver runs"
            )
        self.spark = spark
        self.master = str(spark.sparkContext.master)

    @property
    def _context(self) -> Any:
        return self.spark.sparkContext._jsc.sc()

    @property
    def _jvm(self) -> Any:
        return self.spark.sparkContext._jvm

    @property
    def started_at(self) -> float:
        return float(self._context.startTime()) / 1e3

    def setting(self, key: str, default: str) -> str:
        """A setting of the application's SparkContext."""
        return self.spark.sparkContext.getConf().get(key, default) or default

    def thread_cpu_s(self) -> float | None:
        """CPU seconds of the JVM thread that serves the calling Python thread; None where the JVM
        does not count them or is gone.
        """
        try:
            threads = self._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
            used_ns = float(threads.getCurrentThreadCpuTime())
        except Exception:  # only a figure of a report
            return None
        return used_ns / 1e9 if used_ns >= 0 else None

    def executors(self) -> list[ExecutorInfo]:
        """Active executors, the driver among them."""
        active = self._context.statusStore().executorList(True)
        return [
            ExecutorInfo(
                str(e.id()),
                int(e.totalCores()),
                self._task_s(e),
                e.addTime().getTime() / 1e3,
                str(e.hostPort()).rpartition(":")[0],
            )
            for e in (active.apply(i) for i in range(active.size()))
        ]

    def _task_s(self, executor: Any) -> float:
        """For the driver, executorList reports uptime instead of task time; the store behind it has
        the task time.
        """
        if executor.id() != DRIVER:
            return float(executor.totalDuration()) / 1e3
        kind = self._jvm.java.lang.Class.forName("org.apache.spark.status.ExecutorSummaryWrapper")
        store = self._context.statusStore().store()
        return float(store.read(kind, DRIVER).info().totalDuration()) / 1e3

    def request_total(self, total: int) -> bool:
        """Ask the cluster manager for ``total`` executors; False when it refuses."""
        no_hosts = self._scala("scala.collection.immutable.Map").empty()
        return bool(self._context.requestTotalExecutors(total, 0, no_hosts))

    def decommission(self, name: str) -> bool:
        """No new task goes to the executor; it exits once its tasks are done and its blocks
        moved.
        """
        info = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "given back by foretide", self._scala("scala.None")
        )
        backend = self._context.schedulerBackend()
        return bool(backend.decommissionExecutor(name, info, False, False))

    def kill_if_idle(self, name: str) -> bool:
        """Stop an executor that runs no task; False when it is busy."""
        one = self._jvm.PythonUtils.toSeq([name])
        backend = self._context.schedulerBackend()
        return not backend.killExecutors(one, False, False, False).isEmpty()

    def _scala(self, name: str) -> Any:
        """A Scala object (not a class) by its full name."""
        value: Any = self._jvm
        for part in f"{name}$".split("."):
            value = getattr(value, part)
        return getattr(value, "MODULE$")

    def ended_jobs(self, run_id: str, after: int) -> list[JobInfo]:
        """Jobs of a query's run numbered above ``after``, in order, up to the first that still
        runs.
        """
        tracker = self.spark.sparkContext.statusTracker()
        jobs = []
        for number in sorted(j for j in tracker.getJobIdsForGroup(run_id) if j > after):
            info = tracker.getJobInfo(number)
            if info is None or info.status == "RUNNING":
                break
            stages = [s for stage in info.stageIds if (s := self._stage(stage)) is not None]
            stages.sort(key=lambda s: (s.submitted_at, s.completed_at))
            started = stages[0].submitted_at if stages else 0.0
            jobs.append(JobInfo(number, started, tuple(stages)))
        return jobs

    def _stage(self, number: int) -> StageInfo | None:
        try:
            data = self._context.statusStore().lastStageAttempt(number)
        except Exception as error:  # a stage that is already forgotten has no metrics
            if "NoSuchElement" not in str(error):
                raise
            return None
        submitted, completed = data.submissionTime(), data.completionTime()
        if submitted.isEmpty() or completed.isEmpty():  # a skipped stage ran nothing
            return None
        task_ms = float(data.executorRunTime()) + float(data.executorDeserializeTime())
        return StageInfo(
            int(data.numTasks()),
            task_ms / 1e3,
            submitted.get().getTime() / 1e3,
            completed.get().getTime() / 1e3,
        )

    def latest_offsets(self, query: Any) -> list[Mapping[str, int]] | None:
        """The newest offsets of each Kafka source of a query, by ``topic/partition``, asked over
        the source's own connection; None when some source is not Kafka or the call is not there.

        Only through Kafka's AdminClient, which may be used by several threads. A source that was
        set to fetch offsets with a consumer is left alone: a second thread would fail its query.
        """
        try:
            execution = query._jsq.streamingQuery()
            streams = execution.sources()
            offsets = [self._kafka_latest(streams.apply(i)) for i in range(streams.size())]
        except Exception:  # any other Spark, any other source: progress reports are enough
            return None
        return offsets or None

    def _kafka_latest(self, stream: Any) -> Mapping[str, int]:
        reader = stream.kafkaOffsetReader()
        if reader.getClass().getSimpleName() != "KafkaOffsetReaderAdmin":
            raise ValueError("these offsets are not fetched with an AdminClient")
        return parsed_offsets(str(reader.fetchLatestOffsets(self._scala("scala.None"))))

    def trigger_s(self, query: Any) -> float | None:
        """Seconds between two batches that the query's trigger asks for; None when unknown."""
        try:
            return float(query._jsq.streamingQuery().trigger().intervalMs()) / 1e3
        except Exception:  # another kind of trigger
            return None

    def metric_registry(self) -> Any:
        """The registry behind Spark's metrics system, which all its sinks report. Read field by
        field: a call on SparkEnv makes py4j load classes that are not in Spark's jars.
        """
        value = self._context
        for owner, name in (
            ("SparkContext", "_env"),
            ("SparkEnv", "metricsSystem"),
            ("metrics.MetricsSystem", "registry"),
        ):
            kind = self._jvm.java.lang.Class.forName(f"org.apache.spark.{owner}")
            field = kind.getDeclaredField(name)
            field.setAccessible(True)
            value = field.get(value)
        return value

    def gauge(self) -> Any:
        """A new gauge of the metrics library; ``setValue`` changes what it shows."""
        return self._jvm.com.codahale.metrics.DefaultSettableGauge(float("nan"))


def parsed_offsets(text: str) -> dict[str, int]:
    """Offsets from the text of a Scala map of Kafka's TopicPartitions.

    >>> parsed_offsets("Map(my-topic-0 -> 12, my-topic-1 -> 7)")
    {'my-topic/0': 12, 'my-topic/1': 7}
    """
    pairs: Sequence[tuple[str, str, str]] = re.findall(r"([\w.-]+)-(\d+) -> (\d+)", text)
    if not pairs:
        raise ValueError(f"these are no Kafka offsets: {text[:100]}")
    return {f"{topic}/{partition}": int(offset) for topic, partition, offset in pairs}
