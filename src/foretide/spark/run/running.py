"""A pipeline that runs: its queries, its replicas, its failure.

Replicas are plain numbers that every micro-batch reads when it starts, so changing them needs no
restart.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from foretide.balance import GROUPINGS
from foretide.errors import ActuationError, PipelineFailed
from foretide.model import whole
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.declare.wiring import Wired, stamped, wire
from foretide.spark.edge.outbox import Outbox
from foretide.spark.edge.protocol import Manifest, Output
from foretide.spark.edge.recovery import Place, recover
from foretide.spark.run import channels as outgoing
from foretide.spark.run.accounts import Accounts, Delivery, Inputs
from foretide.spark.run.channels import DEAD, DEAD_COLUMNS, Channels
from foretide.spark.run.edges import edges_of
from foretide.spark.run.failures import explain
from foretide.spark.run.folder import RunFolder
from foretide.spark.run.limits import Limits
from foretide.spark.run.output import Gathered, OutputFolder
from foretide.spark.run.placing import Placement
from foretide.spark.run.query import Facilities, OperatorQuery
from foretide.spark.run.renaming import check_names
from foretide.spark.run.sessions import missing_settings
from foretide.spark.run.trees import Trees
from foretide.topology import Topology

log = logging.getLogger(__name__)
TIMEOUT_S = 300.0
GRACE_S = 10.0
"""How long a stop waits for batches in flight, all queries together."""

Observer = Callable[["Running", str, Delivery], None]


class Running:
    """Use as a context manager, or call ``stop``. ``path`` belongs to one running pipeline at a
    time.

    ``batch_limits`` fixes the events per batch of some operators, which otherwise follow their
    service time. ``on_delivery`` is called, on the query's thread, before a delivered batch counts.
    Directory sinks are gathered in ``output`` (default: ``path``/output).
    """

    def __init__(
        self,
        pipeline: Pipeline,
        spark: SparkSession,
        path: Path | str,
        grouping: str = "shuffle",
        batch_limits: Mapping[str, int] | None = None,
        on_delivery: Observer = lambda running, name, delivery: None,
        output: Path | str | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.spark = spark
        self.grouping = GROUPINGS[grouping].name
        self.queries: dict[str, OperatorQuery] = {}
        self.placement = Placement()
        self.output = OutputFolder(spark, Path())
        wired = wire(pipeline, spark)
        channels = {n: outgoing.declared(pipeline, spark, w) for n, w in wired.items()}
        self.trees = _trees(wired, channels)
        declared = pipeline.topology()
        self.topology = Topology(
            tuple(replace(o, stateful=wired[o.name].stateful) for o in declared.operators)
        )
        self._failure: PipelineFailed | None = None
        self._stopping = threading.Event()
        self._changing = threading.Lock()  # replicas and their file change together
        self.folder = RunFolder(path, pipeline.durability, pipeline.store, spark)
        if missing := missing_settings(spark):
            log.warning(
                "this Spark session works, but slower or less evenly than with %s",
                ", ".join(missing),
            )
        try:
            self.started_at = self.folder.started_at(pipeline.name)
            former = {n: w.step.formerly for n, w in wired.items()}
            check_names(self.folder.kept, former)
            self.folder.edges = edges_of(pipeline, self.folder, channels)
            outputs = {n: self.folder.edges.output(n) for n in wired}
            recover({n: self._place(w, channels[n], outputs[n]) for n, w in wired.items()})
            manifests = {n: output.latest() for n, output in outputs.items()}
            saved = self.folder.saved_replicas()
            self.replicas = {
                n: self._first_replicas(n, saved.get(n, m.replicas if m else 0))
                for n, m in manifests.items()
            }
            inputs = {n: self._inputs(w) for n, w in wired.items()}
            self.accounts = Accounts(manifests, inputs, lambda n, d: on_delivery(self, n, d))
            self.limits = Limits(self.folder, pipeline.trigger_s, self.replicas, batch_limits)
            place = self.path / "output" if output is None else Path(output).absolute()
            self.output = OutputFolder(spark, place, pipeline.durability == "power")
            facilities = self._facilities()
            self.queries = {n: OperatorQuery(w, channels[n], facilities) for n, w in wired.items()}
            for q in self.queries.values():
                self._open_output(q)
                q.start()
            self.output.start()
        except BaseException:
            self.stop()
            raise

    def _open_output(self, query: OperatorQuery) -> None:
        """The directory sinks of an operator, and its dead letters."""
        if not isinstance(query.outbox, Outbox):
            return
        gives = query.wired.gives
        sinks = {
            f"sink.{k.name}": (k.name, stamped(gives[k.input.output]))
            for k in query.channels.sinks
            if k.write is None
        }
        if query.wired.diverts:
            dead = StructType([StructField(c, StringType()) for c in DEAD_COLUMNS])
            sinks[DEAD] = (f"{DEAD}-{query.name}", stamped(dead))
        for folder, (name, schema) in sinks.items():
            if not query.outbox.on_disk(folder):
                continue
            target = self.output.root / name
            gathered = Gathered(target, query.outbox, folder, schema, query.tidying)
            self.output.open(f"{query.name}/{folder}", gathered)

    def _place(self, wired: Wired, channels: Channels, output: Output) -> Place:
        written_out = any(s.write is not None for s in channels.sinks)
        checkpoint = self.folder.checkpoint(wired.name)
        return Place(wired.name, checkpoint, output, wired.producers, written_out)

    def _facilities(self) -> Facilities:
        return Facilities(
            self.spark,
            self.pipeline.name,
            self.pipeline.trigger_s,
            self.pipeline.sample_every,
            self.grouping,
            self.started_at,
            self.folder,
            self.accounts,
            self.replicas,
            self.limits,
            self.output,
            lambda: self.ending,
            self.failed,
            self.placement,
            self.trees,
        )

    def _inputs(self, wired: Wired) -> Inputs:
        def outside(latest: Manifest, at: float) -> int | None:
            return self.queries[wired.name].outside.arrived(latest, at)

        totals = {
            s.name: s.open.timetable.total for s in wired.sources if isinstance(s.open, Generator)
        }
        return Inputs(wired.producers, outside, totals)

    @property
    def path(self) -> Path:
        return self.folder.path

    def _first_replicas(self, name: str, last: int) -> int:
        o = self.topology[name]
        return min(max(last, o.min_replicas), o.max_replicas)

    def max_parallelism(self, name: str) -> int | None:
        """Replicas beyond this add nothing: the partitions of a state, the slots of local mode."""
        limits = [self.topology[name].max_replicas] if self.topology[name].stateful else []
        if str(self.spark.sparkContext.master).startswith("local["):
            limits.append(self.spark.sparkContext.defaultParallelism)
        return min(limits, default=None)

    def set_replicas(self, wanted: Mapping[str, int]) -> None:
        """From each operator's next micro-batch on. Absolute, idempotent; all or nothing: the file
        is written before anything changes.
        """
        asked = {n: whole(f"replicas of operator '{n}'", r, 1) for n, r in wanted.items()}
        for name, n in asked.items():
            if name not in self.replicas:
                raise ActuationError(f"pipeline '{self.pipeline.name}' has no operator '{name}'")
            o = self.topology[name]
            if not o.min_replicas <= n <= o.max_replicas:
                raise ActuationError(
                    f"operator '{name}' takes {o.min_replicas} to {o.max_replicas} replicas, not "
                    f"{n}"
                )
        with self._changing:
            self.folder.save_replicas({**self.replicas, **asked})
            self.replicas.update(asked)
        for name in asked:
            self.limits.renew(name)

    def backlog(self, name: str) -> int | None:
        """Events that arrived at an operator and are not done, those of the running batch included;
        None when its source does not say what arrived.
        """
        return self.accounts.backlog(name, time.time())

    def service_times_s(self) -> dict[str, float]:
        """Busy seconds per event of functions per event, as last observed here or in an earlier
        run. A DataFrame function's are left out: its batches are timed, not its work.
        """
        measured = {n: self.limits.service_time_s(n) for n in self.topology.names}
        frames = {n for n, q in self.queries.items() if q.wired.step.kind == "frame"}
        return {n: s for n, s in measured.items() if s is not None and n not in frames}

    def selectivities(self) -> dict[tuple[str, str], float]:
        """Events sent on every edge per event that its producer took, since the first start."""
        latest = {n: self.accounts.latest(n) for n in self.topology.names}
        return {
            (p, c): latest[p].delivered.get(f"to.{c}", 0) / taken
            for p, c in self.topology.edges
            if (taken := sum(latest[p].consumed.values()))
        }

    def failed(self, name: str, error: Exception) -> PipelineFailed:
        """Remember the first failure and stop everything; called on a query's thread."""
        failure = explain(name, error, self.path)
        if not self.ending:
            self._failure = failure
            threading.Thread(target=self._stop_queries, daemon=True, name="foretide-stop").start()
        with self.accounts.changed:
            self.accounts.changed.notify_all()
        return failure

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    @property
    def ending(self) -> bool:
        """Whether its queries are being stopped, by request or since one of them failed."""
        return self._stopping.is_set() or self.has_failed

    def check(self) -> None:
        """Raise PipelineFailed when some query has ended by itself."""
        if self._failure is None and not self._stopping.is_set():
            for n, q in self.queries.items():
                if q.query is not None and not q.query.isActive:
                    outside = PipelineFailed(
                        f"operator '{n}': its query was stopped from outside; nothing is lost: "
                        "start again"
                    )
                    self.failed(n, q.query.exception() or outside)
                    break
        if self._failure is not None:
            raise self._failure

    def idle(self) -> bool:
        """Nothing waits anywhere, and every generated load has come to its end."""
        return self.accounts.idle(time.time())

    def wait(self, timeout_s: float = TIMEOUT_S) -> None:
        """Return when idle; raise when the pipeline fails or the time is over."""
        until = time.monotonic() + timeout_s
        with self.accounts.changed:
            while not self.idle():
                self.check()
                if time.monotonic() > until:
                    left = {n: self.backlog(n) for n in self.topology.names}
                    raise PipelineFailed(
                        f"pipeline '{self.pipeline.name}' is not done after {timeout_s:.0f} s; "
                        f"waiting: {left}"
                    )
                self.accounts.changed.wait(0.5)
        self.check()

    def read(self, sink: str) -> DataFrame:
        """What a sink without a writer holds now; ``read("dead:OPERATOR")`` the dead letters of an
        operator.
        """
        kind, _, operator = sink.partition(":")
        if kind == DEAD:
            query, folder = self.queries[operator], DEAD
            columns = StructType([StructField(c, StringType()) for c in DEAD_COLUMNS])
        else:
            given = self.pipeline.sinks[sink].input
            query, folder = self.queries[given.producer], f"sink.{sink}"
            columns = query.wired.gives[given.output]
        if isinstance(query.outbox, Outbox) and query.outbox.on_disk(folder):
            return self.output.read(f"{query.name}/{folder}")
        held = query.outbox.frame(self.spark, stamped(columns), folder)
        assert held is not None
        return held

    def stop(self) -> None:
        """Stop every query, between two batches where that is soon. A batch that is cut off comes
        again at the next start: nothing is lost or doubled.
        """
        self._stopping.set()
        self._stop_queries()
        self.output.stop()
        self.folder.release()

    def _stop_queries(self) -> None:
        until = time.monotonic() + GRACE_S
        for q in self.queries.values():
            q.stop(until)

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _trees(wired: Mapping[str, Wired], channels: Mapping[str, Channels]) -> Trees | None:
    """The account of inputs that are followed to their completion. None where a stamp does not pass
    through an operator unchanged (functions per record batch and DataFrame functions) or where a
    predicate on an edge drops events uncounted.
    """
    readers: dict[str, dict[str | None, int]] = {}
    for name, w in wired.items():
        if w.step.kind != "events":
            return None
        readers[name] = {}
        for channel in channels[name].channels:
            count = sum(1 for folder in channel.folders if folder.startswith("to."))
            if count and channel.predicate is not None:
                return None
            readers[name][channel.output] = readers[name].get(channel.output, 0) + count
    return Trees(readers, [n for n, w in wired.items() if w.sources])
