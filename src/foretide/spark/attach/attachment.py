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

from foretide.clock import WallClock, window_ends
from foretide.control import ModeSwitch, control_path
from foretide.errors import InvalidConfig, NotReady
from foretide.history import History
from foretide.journal import Journal, Run
from foretide.model import Decision, Forecast, Mode, Plan, Snapshot
from foretide.parts import Planner
from foretide.spark.attach.progress import Cluster, Watch, parsed, query_name, topology_of
from foretide.spark.control.executors import Executors
from foretide.systems import system
from foretide.topology import Topology

log = logging.getLogger(__name__)


class _Listener(StreamingQueryListener):
    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.names: dict[str, str] = {}
        self.idle: set[str] = set()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """A query counts from its first batch on."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        batch = parsed(json.loads(event.progress.json))
        self.names[str(event.progress.id)] = batch.query
        self.watch.add(batch)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing arrived: nothing to tell, and nobody need wait for its first batch."""
        self.idle.add(str(event.id))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self.watch.forget(self.names.pop(str(event.id), ""))
        self.idle.discard(str(event.id))


class _ExecutorsOnly:
    """A planner whose replicas stay as they are: queries that are only watched have none to set."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        wanted = self.planner.plan(topology, history, forecasts)
        return Plan(
            {n: max(1, history.replicas(n)) for n in topology.names},
            wanted.reasons,
            wanted.executors,
        )


class Attachment:
    """A loop beside somebody's queries, on a thread of its own. ``stop()`` ends it; the queries go
    on.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Mapping[str, Any],
        edges: Mapping[str, Sequence[str]],
        run_dir: Path,
    ) -> None:
        self.spark = spark
        self.settings = settings
        self.edges = edges
        self.executors = Executors(spark)
        self.watch = Watch(settings["target_latency_s"])
        self.journal_path = run_dir / "journal.jsonl"
        self.last: Decision | None = None
        self.advised = threading.Event()
        self.listener = _Listener(self.watch)
        self._mode = ModeSwitch(
            control_path(self.journal_path), settings["mode"]
        )  # here, so that a folder nobody can write to is told
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="foretide-attach", daemon=True)
        spark.streams.addListener(self.listener)
        self._thread.start()

    @property
    def advice(self) -> str:
        """The newest advice in one sentence."""
        plan = self.last.plan if self.last else None
        if plan is None:
            return (
                "no advice yet: "
                f"{self.last.error if self.last and self.last.error else 'no window has passed'}"
            )
        return plan.reasons.get("", "executors stay as they are")

    def stop(self) -> None:
        """Detach: the loop ends, the listener goes, the queries stay."""
        self._stop.set()
        self._thread.join(timeout=30)
        self.spark.streams.removeListener(self.listener)

    def apply(self, plan: Plan) -> None:
        if plan.executors is not None:
            self.executors.request(plan.executors)

    def _run(self) -> None:
        clock = WallClock()
        window_s = self.settings["window_s"]
        with self._mode as mode:
            while not self._stop.is_set():
                if not self.watch.latest:
                    clock.wait_until(clock.now() + 1.0, self._stop)
                    continue
                topology = topology_of(
                    self.watch.latest,
                    self.edges,
                    self.settings["max_executors"] * self.executors.cores,
                )
                try:
                    self._loop(topology, mode, clock, window_s)
                except Exception:
                    log.exception(
                        "the attached loop failed and starts again; your queries are not affected"
                    )
                    clock.wait_until(clock.now() + window_s, self._stop)

    def _loop(
        self, topology: Topology, mode: ModeSwitch, clock: WallClock, window_s: float
    ) -> None:
        """One life of the loop: until the application's queries change."""
        run = Run(
            "attach",
            "attach",
            topology,
            window_s,
            clock.now(),
            mode(),
            self.settings["target_latency_s"],
        )
        with Journal(self.journal_path, run) as journal:
            probe = _Probe(self, topology, window_s)
            chosen = system("attach", planner_constants=self._constants())
            scaler = chosen.autoscaler(
                topology, probe, self, mode, lambda decision: self._record(journal, decision)
            )
            scaler.planner = _ExecutorsOnly(scaler.planner)
            probe.begin(clock.now())
            for end in window_ends(clock, window_s, self._stop):
                scaler.step(end.at, end.gap)
                if set(self.watch.latest) != set(topology.names):
                    return

    def _constants(self) -> dict[str, Any]:
        return {
            "target_s": self.settings["target_latency_s"],
            "cores": self.executors.cores,
            "max_executors": self.settings["max_executors"],
        }

    def _record(self, journal: Journal, decision: Decision) -> None:
        before = self.last.plan.executors if self.last and self.last.plan else None
        self.last = decision
        if decision.plan is not None:
            if decision.plan.executors != before:
                log.warning(
                    "foretide %s %s executors: %s",
                    decision.outcome,
                    decision.plan.executors,
                    self.advice,
                )
            self.advised.set()
        journal.append(decision)


class _Probe:
    def __init__(self, attachment: Attachment, topology: Topology, window_s: float) -> None:
        self.attachment = attachment
        self.topology = topology
        self.window_s = window_s

    def begin(self, now: float) -> None:
        """Forget what happened before the first window."""
        self.attachment.watch.begin(now)
        self.attachment.executors.utilization(now)
        for query in self.attachment.spark.streams.active:
            self.attachment.executors.busy_s(query)

    def read(self, now: float) -> Snapshot:
        a = self.attachment
        hosts = a.executors.utilization(now)
        running = {query_name(q.name, str(q.id)): q for q in a.spark.streams.active}
        if not running:
            raise NotReady("no streaming query is running")
        at_work = {
            n: q
            for n, q in running.items()
            if n in a.watch.latest or str(q.id) not in a.listener.idle
        }
        busy = {n: a.executors.busy_s(q) for n, q in at_work.items()}
        return a.watch.snapshot(
            self.topology, now, self.window_s, Cluster(a.executors.slots(), busy, hosts or None)
        )


def attach(
    spark: SparkSession,
    *,
    target_latency_s: float = 10.0,
    max_executors: int = 10,
    mode: Mode = "advise",
    window_s: float = 10.0,
    edges: Mapping[str, Sequence[str]] | None = None,
    run_dir: str | Path | None = None,
) -> Attachment:
    """Watch the streaming queries of a running application and advise (or, with ``mode="act"``,
    set) its number of executors.

    ``edges`` maps a query's name to those it reads from, where Foretide cannot see it from sources
    and sinks. The journal is written to ``run_dir`` (default ``runs/attach-<time>``); ``foretide
    dashboard`` opens it.
    """
    if target_latency_s <= 0 or window_s <= 0 or max_executors < 1:
        raise InvalidConfig(
            "attach needs target_latency_s > 0, window_s > 0 and max_executors >= 1"
        )
    if mode not in ("advise", "act"):
        raise InvalidConfig(f"'{mode}' is not a mode: advise or act")
    if mode == "act" and spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        raise InvalidConfig(
            "Spark's dynamic allocation is on and would fight with Foretide: set "
            "spark.dynamicAllocation.enabled=false"
        )
    where = Path(run_dir) if run_dir else Path("runs") / time.strftime("attach-%Y%m%d-%H%M%S")
    settings = {
        "target_latency_s": target_latency_s,
        "max_executors": max_executors,
        "mode": mode,
        "window_s": window_s,
    }
    return Attachment(spark, settings, edges or {}, where)
