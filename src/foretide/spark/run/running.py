"""A pipeline that runs: its queries, its replicas, its ledger, its failure.

Replicas are plain numbers that every micro-batch reads when it starts, so changing them needs no
restart.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import msgspec
from pyspark.sql import DataFrame, SparkSession

from foretide.balance import GROUPINGS
from foretide.errors import ActuationError, InvalidConfig, PipelineFailed
from foretide.model import whole
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.declare.wiring import wire
from foretide.spark.edge.checkpoint import offset_gap, replace_file
from foretide.spark.edge.source import NO_LIMIT
from foretide.spark.run.failures import explain
from foretide.spark.run.ledger import Batch, Ledger
from foretide.spark.run.query import DEAD, OperatorQuery
from foretide.spark.run.sessions import missing_settings
from foretide.spark.worker.columns import ERROR, EVENT, OPERATOR, STAMP
from foretide.topology import Topology

log = logging.getLogger(__name__)
TIMEOUT_S = 300.0
GRACE_S = 10.0
"""How long a stop waits for batches in flight, all queries together."""


class Running:
    """Use as a context manager, or call ``stop``. ``path`` belongs to one running pipeline at a
    time.
    """

    def __init__(
        self, pipeline: Pipeline, spark: SparkSession, path: Path | str, grouping: str = "shuffle"
    ) -> None:
        self.pipeline = pipeline
        self.spark = spark
        self.path = Path(path).absolute()
        self.grouping = GROUPINGS[grouping].name
        wired = wire(pipeline, spark)
        declared = pipeline.topology()
        self.topology = Topology(
            tuple(replace(o, stateful=wired[o.name].stateful) for o in declared.operators)
        )
        self._failure: PipelineFailed | None = None
        self._stopping = threading.Event()
        self._changing = (
            threading.RLock()
        )  # a loop's thread and those of batches change replicas and limits
        self._lock = self._own()
        if missing := missing_settings(spark):
            log.warning(
                "this Spark session works, but slower or less evenly than with %s",
                ", ".join(missing),
            )
        try:
            self.started_at = self._started_at()
            self.queries = {n: OperatorQuery(w, self) for n, w in wired.items()}
            for q in self.queries.values():
                self._check_disk(q)
            manifests = {n: q.outbox.latest() for n, q in self.queries.items()}
            self.ledger = Ledger(manifests)
            asked = self._asked()
            self.replicas = {
                n: self._first_replicas(n, asked.get(n, m.replicas if m else 0))
                for n, m in manifests.items()
            }
            self._service_time_s: dict[str, float] = {}
            self._limits: dict[str, int] = {}
            for q in self.queries.values():
                q.start()
        except BaseException:
            self.stop()
            raise

    def _own(self) -> int:
        if set(str(self.path)) & set("[]{}*?\\"):
            raise InvalidConfig(
                f"Spark takes {self.path} for a pattern: choose a directory without any of "
                f"[]{{}}*?\\ in its name"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise PipelineFailed(
                f"cannot use {self.path}: {error.strerror}; choose a directory you can write to"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise PipelineFailed(
                f"another process runs a pipeline in {self.path}: stop it, or choose another "
                "directory"
            ) from None
        return fd

    def _started_at(self) -> float:
        """When the pipeline first started here: generated loads count from there, also after a
        restart.
        """
        file = self.path / "pipeline.json"
        if file.exists():
            try:
                found = msgspec.json.decode(file.read_bytes(), type=dict[str, str | float])
                name, at = str(found["name"]), float(found["started_at"])
            except (msgspec.DecodeError, KeyError, ValueError) as error:
                raise PipelineFailed(
                    f"{file} cannot be read ({error}): restore it, or start in another directory"
                ) from error
            if name != self.pipeline.name:
                raise InvalidConfig(
                    f"{self.path} belongs to pipeline '{name}', not to '{self.pipeline.name}': "
                    "choose another"
                )
            return at
        at = time.time()
        replace_file(file, msgspec.json.encode({"name": self.pipeline.name, "started_at": at}))
        return at

    def _check_disk(self, query: OperatorQuery) -> None:
        """Every batch that was logged was delivered, but for the last one perhaps: anything else on
        disk is a loss or an old copy.
        """
        query.checkpoint.check()
        if (last := query.checkpoint.last_batch()) is None:
            query.outbox.create()
        logged, delivered = -1 if last is None else last, max(query.outbox.batches(), default=-1)
        if delivered not in (logged, max(-1, logged - 1)):
            raise PipelineFailed(
                f"operator '{query.name}': the newest batch is {delivered} in {query.outbox.root} "
                f"but {logged} in "
                f"{query.checkpoint.root} (-1: none), so one of them is lost or an old copy: "
                "nothing was deleted; restore both from "
                "the same moment, or start the pipeline anew in another directory"
            )

    def _first_replicas(self, name: str, last: int) -> int:
        o = self.topology[name]
        return min(max(last, o.min_replicas), o.max_replicas)

    def _asked(self) -> dict[str, int]:
        """The replicas last asked for, also where no batch has used them yet; what cannot be read
        is left to the manifests.
        """
        try:
            return msgspec.json.decode(
                (self.path / "replicas.json").read_bytes(), type=dict[str, int]
            )
        except (OSError, msgspec.DecodeError):
            return {}

    @contextmanager
    def settings(self, pool: str, conf: Mapping[str, str]) -> Iterator[None]:
        """Session settings that a query started inside keeps for itself."""
        before = {k: self.spark.conf.get(k) for k in conf}
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        for k, v in conf.items():
            self.spark.conf.set(k, v)
        try:
            yield
        finally:
            self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
            for k, old in before.items():
                if old is not None:
                    self.spark.conf.set(k, old)

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
            self._keep_replicas({**self.replicas, **asked})
            self.replicas.update(asked)
            for name in asked:
                self._renew_limit(name)

    def _keep_replicas(self, replicas: Mapping[str, int]) -> None:
        file = self.path / "replicas.json"
        try:
            replace_file(file, msgspec.json.encode(replicas))
        except OSError as error:
            raise ActuationError(
                f"cannot write {file}: {error.strerror}; replicas stay as they are"
            ) from error

    def limit_file(self, name: str) -> Path:
        return self.path / f"limit.{name}"

    def _renew_limit(self, name: str) -> None:
        """A batch takes what the replicas work off in two triggers, so that the next change of
        replicas is not far.
        """
        if (et := self._service_time_s.get(name)) is None:
            return
        with self._changing:
            limit = max(10, int(2 * self.pipeline.trigger_s * self.replicas[name] / max(et, 1e-9)))
            if self._limits.get(name) != limit:
                try:
                    replace_file(self.limit_file(name), str(limit).encode())
                except OSError as error:
                    log.warning("operator '%s' keeps its batch limit: %s", name, error)
                else:
                    self._limits[name] = limit

    def least_limit(self, consumers: Iterable[str]) -> int:
        """Events per file: no consumer's limit should be smaller than a file. 0 is no limit."""
        known = [self._limits[c] for c in consumers if c in self._limits]
        return min(known, default=0) if min(known, default=NO_LIMIT) < NO_LIMIT else 0

    def delivered(self, query: OperatorQuery, batch: Batch, spent_s: float) -> None:
        """A query tells of a batch it has just made visible."""
        self.ledger.add(query.name, batch)
        if batch.events:
            busy_s = sum(r.busy_s for r in batch.reports) or spent_s * batch.manifest.replicas
            now, before = busy_s / batch.events, self._service_time_s.get(query.name)
            self._service_time_s[query.name] = now if before is None else 0.5 * (before + now)
            self._renew_limit(query.name)

    def backlog(self, name: str) -> int:
        """Events that came to an operator by now and that it is not done with; exact for edges and
        generated loads.
        """
        with self.ledger.changed:
            return sum(self.arrivals(name, time.time())) - self.consumed(name)

    def consumed(self, name: str) -> int:
        """Events that an operator is done with, ever."""
        return sum(self.ledger.latest(name).consumed.values())

    def arrivals(self, name: str, at: float, lag: int = 0) -> tuple[int, int]:
        """Events that ever came to an operator (from operators, from outside); ``lag`` waits in
        sources that are not ours.
        """
        wired = self.queries[name].wired
        inside = sum(self.ledger.delivered(p, name) for p in wired.producers)
        taken = self.ledger.latest(name).consumed
        outside = lag
        for source in wired.sources:
            due = source.open.due(at - self.started_at) if isinstance(source.open, Generator) else 0
            outside += max(due, taken.get(source.name, 0))
        return inside, outside

    def lag(self, name: str) -> int:
        """Events that an operator's own sources (Kafka, say) say are waiting; 0 where they do not
        tell.
        """
        query = self.queries[name]
        if query.query is None or all(isinstance(s.open, Generator) for s in query.wired.sources):
            return 0
        progress = query.query.lastProgress
        own = progress.sources[: len(query.wired.sources)] if progress else []
        return sum(offset_gap(s.endOffset, s.latestOffset) for s in own)

    def failed(self, name: str, error: Exception) -> PipelineFailed:
        """Remember the first failure and stop everything; called on a query's thread."""
        failure = explain(name, error, self.path)
        if not self.ending:
            self._failure = failure
            threading.Thread(target=self._stop_queries, daemon=True, name="foretide-stop").start()
        with self.ledger.changed:
            self.ledger.changed.notify_all()
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
        with self.ledger.changed:  # or an event could go round a loop behind our back
            for n, q in self.queries.items():
                taken = self.ledger.latest(n).consumed
                for s in q.wired.sources:
                    if (
                        isinstance(s.open, Generator)
                        and taken.get(s.name, 0) < s.open.timetable.total
                    ):
                        return False
            return all(self.backlog(n) == 0 for n in self.topology.names)

    def wait(self, timeout_s: float = TIMEOUT_S) -> None:
        """Return when idle; raise when the pipeline fails or the time is over."""
        until = time.monotonic() + timeout_s
        with self.ledger.changed:
            while not self.idle():
                self.check()
                if time.monotonic() > until:
                    left = {n: self.backlog(n) for n in self.topology.names}
                    raise PipelineFailed(
                        f"pipeline '{self.pipeline.name}' is not done after {timeout_s:.0f} s; "
                        f"waiting: {left}"
                    )
                self.ledger.changed.wait(0.5)
        self.check()

    def read(self, sink: str) -> DataFrame:
        """What a directory sink holds now; ``read("dead:OPERATOR")`` the dead letters of an
        operator.
        """
        kind, _, operator = sink.partition(":")
        if kind == DEAD:
            query, folder, columns = self.queries[operator], DEAD, [OPERATOR, ERROR, EVENT]
        else:
            given = self.pipeline.sinks[sink].input
            query, folder = self.queries[given.producer], f"sink.{sink}"
            columns = query.wired.gives[given.output].names
        return self.spark.read.parquet(str(query.outbox.root / "b-*" / folder)).select(
            *columns, STAMP
        )

    def stop(self) -> None:
        """Stop every query, between two batches where that is soon. A batch that is cut off comes
        again at the next start: nothing is lost or doubled."""
        self._stopping.set()
        self._stop_queries()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _stop_queries(self) -> None:
        until = time.monotonic() + GRACE_S
        for q in getattr(self, "queries", {}).values():
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
