"""``foretide.attach``: two lines in an application that already runs streaming queries.

Listens to the application's queries (each an operator), forecasts their loads, and advises or sets
the number of executors. The queries themselves are never touched: not restarted, not reconfigured.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from foretide.clock import WallClock
from foretide.control import ModeSwitch, control_path
from foretide.errors import InvalidConfig, JournalError
from foretide.figures.attach_report import ExecutorAccount
from foretide.figures.dynamic_allocation import DynamicAllocation
from foretide.journal import Journal, Run
from foretide.learned import Learned, learned_path
from foretide.model import Decision
from foretide.parts import Planner
from foretide.spark.attach.dynamic import advice_beside
from foretide.spark.attach.gauges import SparkGauges
from foretide.spark.attach.memory import continue_from, earlier_run
from foretide.spark.attach.probe import AttachedProbe
from foretide.spark.attach.progress import parsed, topology_of
from foretide.spark.attach.queries import WatchedQueries
from foretide.spark.attach.settings import AttachMode, AttachSettings
from foretide.spark.control.executor_actuator import ExecutorActuator
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.jvm import SparkJvm
from foretide.spark.control.lead_time import LeadTimes, default_path
from foretide.systems import System, system
from foretide.topology import Topology

log = logging.getLogger(__name__)
RUNS = Path("runs")
SAVE_EVERY = 6
"""Decisions after which what was learned is written: a killed driver loses half a minute of it."""


class _Listener(StreamingQueryListener):
    """Hands reports on; a query that Spark calls idle need not be waited for."""

    def __init__(self, queries: WatchedQueries) -> None:
        self.queries = queries
        self.names: dict[str, str] = {}
        self.idle: set[str] = set()
        self.cpu_s = 0.0

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """A query counts from its first batch on."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        started_s = time.thread_time()
        batch = parsed(json.loads(event.progress.json))
        self.names[batch.run_id] = batch.query
        self.queries.add(batch)
        self.cpu_s += time.thread_time() - started_s

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        self.idle.add(str(event.id))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        run_id = str(event.runId)
        self.queries.forget(self.names.pop(run_id, ""), run_id)
        self.idle.discard(str(event.id))


class Attachment:
    """A loop beside somebody's queries, on a thread of its own. ``stop()`` ends it; the queries go
    on. After that ``cpu_s`` and ``jvm_cpu_s`` are the CPU seconds it used in the driver's Python
    process and in its JVM (the thread that served its calls; None where not counted).
    """

    def __init__(self, spark: SparkSession, settings: AttachSettings) -> None:
        self.spark = spark
        self.settings = settings
        run_dir = settings.run_dir or RUNS / time.strftime("attach-%Y%m%d-%H%M%S")
        self.journal_path = run_dir / "journal.jsonl"
        self.executors = ExecutorPool(spark, LeadTimes(default_path(), settings.lead_s))
        if settings.run_dir is None:
            continue_from(earlier_run(RUNS, spark.sparkContext.appName), self.journal_path)
        self._conf: dict[str, str] = {}
        self.last: Decision | None = None
        self.account = ExecutorAccount(DynamicAllocation(1, settings.max_executors))
        self.cpu_s: float | None = None
        self.jvm_cpu_s: float | None = None
        self.advised = threading.Event()
        self._stop = threading.Event()
        self._life = threading.Event()
        self.queries = WatchedQueries(settings.target_latency_s, self._life.set, settings.targets)
        self.listener = _Listener(self.queries)
        self._mode = ModeSwitch(  # here, so that a folder that cannot be written to is an error
            control_path(self.journal_path), "advise" if settings.mode == "advise" else "act"
        )
        self.gauges = SparkGauges(SparkJvm(spark))
        self._thread = threading.Thread(target=self._run, name="foretide-attach", daemon=True)
        spark.streams.addListener(self.listener)
        self._thread.start()

    @property
    def advice(self) -> str:
        """The newest advice in one sentence."""
        plan = self.last.plan if self.last else None
        if plan is None:
            error = self.last.error if self.last else None
            return f"no advice yet: {error or 'no window has passed'}"
        reason = plan.reasons.get("", "executors stay as they are")
        beside = advice_beside(self._conf, plan.executors or 0, self.settings.mode == "guide")
        return f"{reason}; {beside}" if beside else reason

    def stop(self) -> None:
        """Detach: the loop ends, the listener goes, the queries stay."""
        self._stop.set()
        self._life.set()
        self._thread.join(timeout=30)
        self.gauges.close()
        self.spark.streams.removeListener(self.listener)
        if self.account.seconds:
            log.info("foretide attach summary %s", self.account.line(self.settings.share))

    def _run(self) -> None:
        clock = WallClock()
        try:
            self._lives(clock)
        finally:
            self.cpu_s = time.thread_time() + self.listener.cpu_s
            self.jvm_cpu_s = SparkJvm(self.spark).thread_cpu_s()

    def _lives(self, clock: WallClock) -> None:
        with self._mode as mode:
            while not self._stop.is_set():
                latest = self.queries.latest
                if not latest:
                    clock.wait_until(clock.now() + 1.0, self._stop)
                    continue
                self._life.clear()
                most = self.settings.max_executors * self.executors.cores
                try:
                    self._loop(topology_of(latest, self.settings.edges, most), mode, clock)
                except Exception:
                    log.exception(
                        "the attached loop failed and starts again; your queries are not affected"
                    )
                    clock.wait_until(clock.now() + self.settings.window_s, self._stop)

    def _loop(self, topology: Topology, mode: ModeSwitch, clock: WallClock) -> None:
        """The loop over one set of queries: until one comes or goes, or ``stop()``."""
        chosen = self._system()
        self._conf = dict(self.spark.sparkContext.getConf().getAll())
        self.account.dynamic.cores = self.executors.cores
        probe = AttachedProbe(
            self.spark, topology, self.queries, self.executors, self.listener.idle
        )
        with Journal(self.journal_path, self._described(topology, mode, clock)) as journal:
            scaler = chosen.autoscaler(
                topology,
                probe,
                ExecutorActuator(self.executors, guide=self.settings.mode == "guide"),
                mode,
                lambda decision: self._record(journal, learned, decision),
                effect_check=True,
            )
            path = readable(learned_path(self.journal_path, chosen.planner), scaler.planner)
            with Learned(path, scaler.planner, SAVE_EVERY) as learned:
                probe.begin(clock.now())
                if not self._stop.is_set() and set(self.queries.latest) == set(topology.names):
                    scaler.run(clock, self.settings.window_s, self._life)

    def _system(self) -> System:
        s = self.settings
        built_in = system("attach")
        constants = {
            **built_in.planner_constants,
            "target_s": s.target_latency_s,
            "share": s.share,
            "cores": self.executors.cores,
            "max_executors": s.max_executors,
            "targets": s.targets,
            "priorities": s.priorities,
        }
        return system("attach", planner_constants=constants)

    def _described(self, topology: Topology, mode: ModeSwitch, clock: WallClock) -> Run:
        s = self.settings
        return Run(
            "attach",
            "attach",
            topology,
            s.window_s,
            clock.now(),
            mode(),
            s.target_latency_s,
            settings={
                "application": self.spark.sparkContext.appName,
                "cluster_manager": self.executors.manager,
                "cores": self.executors.cores,
                "max_executors": s.max_executors,
                "targets": dict(s.targets),
                "shared_slots": True,
                "spark_ui": self.spark.sparkContext.uiWebUrl,
            },
            share=s.share,
        )

    def _record(self, journal: Journal, learned: Learned, decision: Decision) -> None:
        before = self.last.plan.executors if self.last and self.last.plan else None
        self.last = decision
        self.account.add(decision)
        if decision.plan is not None:
            if decision.plan.executors != before:
                log.info(
                    "foretide attach outcome=%s executors=%s was=%s reason=%s",
                    decision.outcome,
                    decision.plan.executors,
                    before,
                    self.advice,
                )
            self.advised.set()
        journal.append(decision)
        learned.note(decision)
        self.gauges.note(decision)


def readable(path: Path, planner: Planner) -> Path:
    """The same path; a file there that the planner cannot read is moved aside with a warning: the
    loop learns anew rather than not at all.
    """
    try:
        Learned(path, planner).__enter__()
    except JournalError as error:
        aside = path.with_suffix(".unreadable")
        path.replace(aside)
        log.warning("%s (moved to %s: attach learns anew)", error, aside)
    return path


def attach(
    spark: SparkSession,
    *,
    target_latency_s: float = 10.0,
    max_executors: int = 10,
    mode: AttachMode = "advise",
    window_s: float = 5.0,
    edges: Mapping[str, Sequence[str]] | None = None,
    run_dir: str | Path | None = None,
    share: float = 0.99,
    targets: Mapping[str, float] | None = None,
    priorities: Mapping[str, float] | None = None,
    lead_s: float | None = None,
) -> Attachment:
    """Watch the streaming queries of a running application and advise (or, with ``mode="act"``,
    set) its number of executors. ``mode="guide"`` leaves Spark's dynamic allocation on and only
    brings executors before it would.

    ``share`` of the events should be done within ``target_latency_s``; ``targets`` and
    ``priorities`` are per query. ``edges`` maps a query's name to those it reads from, where
    sources and sinks do not show it. ``lead_s`` is the lead time of an executor until one was
    measured. The journal is written to ``run_dir`` (default ``runs/attach-<time>``); ``foretide
    dashboard`` opens it.
    """
    settings = AttachSettings(
        target_latency_s,
        share,
        max_executors,
        mode,
        window_s,
        edges or {},
        Path(run_dir) if run_dir else None,
        targets or {},
        priorities or {},
        lead_s,
    )
    return attached(spark, settings)


def attached(spark: SparkSession, settings: AttachSettings) -> Attachment:
    """``attach`` with its settings as a record."""
    if (
        settings.mode == "act"
        and spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    ):
        raise InvalidConfig(
            "Spark's dynamic allocation is on and would fight with Foretide: set "
            "spark.dynamicAllocation.enabled=false, or attach with mode='guide'"
        )
    return Attachment(spark, settings)
