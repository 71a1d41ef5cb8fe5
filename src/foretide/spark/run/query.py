"""One operator as one streaming query: take a batch, run it on the replicas of this moment, deliver
it, account for it.

Exactly once: Spark logs what a batch takes before it runs; the outbox makes all its results visible
by one rename. A batch that was delivered before a crash is skipped when Spark replays it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from foretide.clock import PAUSE, POLL_S
from foretide.errors import PipelineFailed
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.wiring import Wired, apply_frame, open_source, source_part, stamped
from foretide.spark.edge.protocol import Manifest, Piece, plus
from foretide.spark.run.accounts import Accounts, Delivery
from foretide.spark.run.channels import Channels
from foretide.spark.run.folder import RunFolder
from foretide.spark.run.limits import Limits
from foretide.spark.run.runners import Outcome, runner_of
from foretide.spark.run.stopping import Brake, CutOff
from foretide.spark.worker.partitioning import feedback
from foretide.spark.worker.stamps import read_back

START_TRIES = 3


@dataclass(frozen=True)
class Facilities:
    """What a query may use of the pipeline that runs it. ``replicas`` changes while it runs."""

    spark: SparkSession
    pipeline: str
    trigger_s: float
    sample_every: int
    grouping: str
    started_at: float
    folder: RunFolder
    accounts: Accounts
    replicas: Mapping[str, int]
    limits: Limits
    ending: Callable[[], bool]
    failed: Callable[[str, Exception], PipelineFailed]


@dataclass(frozen=True)
class Intake:
    """What a batch takes: files per producer, and events per source that counts its own. Spark
    logged it at ``logged_at``; it runs on ``replicas``.
    """

    batch: int
    replicas: int
    logged_at: float
    pieces: Mapping[str, list[Piece]]
    generated: Mapping[str, int]

    @property
    def files(self) -> list[Piece]:
        return [p for pieces in self.pieces.values() for p in pieces]

    @property
    def counted(self) -> dict[str, int]:
        """Events per input, where they are known beforehand."""
        by_producer = {p: sum(f.events for f in files) for p, files in self.pieces.items()}
        return by_producer | dict(self.generated)

    def waited_s(self, now: float) -> float:
        """Seconds between delivery and ``now``, summed over the events from operators."""
        return sum(f.events * (now - f.delivered_at) for f in self.files)


class OperatorQuery:
    """Runs one wired operator until stopped. Its batches run one after another, on a thread of
    Spark's. ``in_flight`` are the replicas of the batch that runs now.
    """

    def __init__(self, wired: Wired, channels: Channels, facilities: Facilities) -> None:
        self.wired = wired
        self.name = wired.name
        self.channels = channels
        self.outbox = facilities.folder.edges.output(self.name)
        self.checkpoint = facilities.folder.checkpoint(self.name)
        self.inbox = facilities.folder.edges.input(self.name, wired.producers)
        self.grouping = wired.step.new_grouping(facilities.grouping)
        self.in_flight: int | None = None
        self.query: StreamingQuery | None = None
        self._use = facilities
        self._runner = runner_of(wired, self.grouping, channels.written, facilities.sample_every)
        self._brake = Brake(self.name)
        self._last_reported = -1

    def start(self) -> None:
        """Return when the query has opened its sources.

        Spark gives a source's Python process 10 seconds to come up, which a busy machine can miss,
        so queries start one after another and one that failed this way is started again.
        """
        for tries_left in reversed(range(START_TRIES)):
            query = self.query = self._start()
            while query.isActive and not query.status["message"].startswith(
                ("Waiting", "Processing")
            ):
                time.sleep(0.05)
            error = query.exception()
            if error is None or tries_left == 0 or "failed to connect back" not in str(error):
                return

    def _start(self) -> StreamingQuery:
        use, step = self._use, self.wired.step
        frame = self._input()
        conf = {}
        if self.wired.stateful:
            conf["spark.sql.shuffle.partitions"] = str(step.max_replicas)
            frame = apply_frame(step, frame)
        every_s = use.trigger_s if self.wired.sources else min(POLL_S, use.trigger_s)
        with session_settings(use.spark, self.name, conf):
            return (
                frame.writeStream.foreachBatch(self._batch)
                .queryName(f"{use.pipeline}.{self.name}")
                .outputMode(step.output_mode)
                .option("checkpointLocation", str(self.checkpoint.root))
                .trigger(processingTime=f"{round(every_s * 1000)} milliseconds")
                .start()
            )

    def _input(self) -> DataFrame:
        """All inputs as one streaming DataFrame: the sources, then the edges."""
        use, wired = self._use, self.wired
        parts = [open_source(use.spark, s, use.started_at) for s in wired.sources]
        parts = [source_part(p, wired) for p in parts]
        if wired.producers:
            limit_file, pause_s = use.folder.limit_file(self.name), PAUSE * use.trigger_s
            schema = stamped(wired.takes)
            parts.append(self.inbox.stream(use.spark, schema, limit_file, pause_s))
        frame = parts[0]
        for part in parts[1:]:
            frame = frame.unionByName(part, allowMissingColumns=True)
        return frame

    def stop(self, until: float) -> None:
        if self.query is not None:
            self._brake.stop(self.query, until)

    def _batch(self, frame: DataFrame, batch: int) -> None:
        try:
            if self._use.ending():
                self._brake.hold(lambda: self.query)
            self._step(frame, batch)
        except Exception as error:  # Spark gets a short text: it overflows on long ones
            if self._use.ending():
                raise CutOff(self.name) from None
            raise self._use.failed(self.name, error) from None
        finally:
            self.in_flight = None

    def _step(self, frame: DataFrame, batch: int) -> None:
        self._forget(batch - 1)
        if self.outbox.has(batch):
            self._replay(frame, batch)
            return
        intake = self._take(batch)
        staging = self.outbox.stage(batch)
        begun = time.perf_counter()
        outcome = self._run(frame, intake, staging)
        spent_s = time.perf_counter() - begun
        delivery = self._deliver(intake, outcome, staging)
        self.channels.write_sinks(frame.sparkSession, self.outbox, batch)
        self._account(intake, delivery, spent_s)

    def _replay(self, frame: DataFrame, batch: int) -> None:
        """A batch that was delivered before a crash: do only what follows its delivery.

        Spark commits no batch whose state was not written in the same run, so a stateful one
        computes its state again.
        """
        if self.wired.stateful:
            frame.write.format("noop").mode("overwrite").save()
        self.channels.write_sinks(frame.sparkSession, self.outbox, batch)

    def _forget(self, batch: int) -> None:
        """Remove what an earlier batch consumed: Spark has committed it when the next one starts."""
        if batch >= 0 and (self.checkpoint.root / "offsets" / str(batch)).exists():
            if self._use.folder.durability == "power":
                self.checkpoint.settle(batch)
            self.inbox.discard([p for pieces in self._offsets(batch)[0].values() for p in pieces])
        self.outbox.sweep()

    def _take(self, batch: int) -> Intake:
        replicas = self.in_flight = self._use.replicas[self.name]
        return Intake(batch, replicas, self.checkpoint.instant(batch), *self._offsets(batch))

    def _offsets(self, batch: int) -> tuple[dict[str, list[Piece]], dict[str, int]]:
        """Files per producer, and events per generated source, that a batch takes."""
        offsets = self.checkpoint.offsets(batch)
        pieces = {}
        if self.wired.producers:
            pieces = self.inbox.between(
                offsets.start[-1] or self.inbox.start(), offsets.end[-1] or self.inbox.start()
            )
        generated = {}
        for source, start, end in zip(self.wired.sources, offsets.start, offsets.end, strict=False):
            if isinstance(source.open, Generator) and end is not None:
                generated[source.name] = end["events"] - (start or {"events": 0})["events"]
        return pieces, generated

    def _run(self, frame: DataFrame, intake: Intake, staging: Path) -> Outcome:
        """Run the batch and write its results to ``staging/data``."""
        wired = self.wired
        if not wired.sources and not wired.stateful:
            if not intake.files:
                return Outcome()
            schema = stamped(wired.takes)  # Spark reads the pieces itself: no Python task
            frame = self.inbox.frame(frame.sparkSession, schema, intake.files)
        per_file = self._use.limits.per_file(self.channels.consumers)

        def write(result: DataFrame) -> None:
            self.channels.write(result, staging / "data", per_file)

        return self._runner.run(frame, intake.replicas, intake.logged_at, write)

    def _deliver(self, intake: Intake, outcome: Outcome, staging: Path) -> Delivery:
        """Make the results visible, with totals since the first start."""
        consumed = self._consumed(intake, outcome)
        files = self.channels.collect(staging / "data", staging)
        latency_of = None if outcome.reports else read_back(staging, files)
        emitted = {folder: sum(n for _, n in held) for folder, held in files.items()}
        before = self._use.accounts.latest(self.name)
        totals = plus(before.consumed, consumed), plus(before.delivered, emitted)
        manifest = Manifest(intake.batch, time.time(), intake.replicas, *totals, files)
        self.outbox.deliver(staging, manifest)
        return Delivery(
            manifest,
            consumed,
            emitted,
            outcome.reports,
            latency_of=latency_of,
            grouping_s=outcome.grouping_s,
        )

    def _consumed(self, intake: Intake, outcome: Outcome) -> dict[str, int]:
        """Events that the batch took, per input."""
        consumed = intake.counted
        others = [s.name for s in self.wired.sources if s.name not in intake.generated]
        if outcome.events is not None and others:
            consumed[others[0]] = outcome.events - sum(consumed.values())
        elif self.wired.stateful and others and not consumed:
            consumed[others[0]] = self._reported_since()
        return consumed

    def _reported_since(self) -> int:
        """Events of the batch before, as Spark reports them: a stateful function on a source that
        is not ours is counted one batch late.
        """
        progress = self.query.lastProgress if self.query is not None else None
        if progress is None or progress.batchId == self._last_reported:
            return 0
        self._last_reported = progress.batchId
        return int(progress.numInputRows)

    def _account(self, intake: Intake, delivery: Delivery, spent_s: float) -> None:
        """Count the delivered batch, renew the limit of the next one, teach the grouping."""
        now, reports = time.time(), delivery.reports
        waited_s = sum(now * r.processed - r.stamp_sum for r in reports) if reports else None
        if intake.pieces:
            waited_s = intake.waited_s(now)
        done = replace(
            delivery,
            manifest=replace(delivery.manifest, at=now),
            waited_s=waited_s,
            took_s=max(0.0, now - intake.logged_at),
        )
        self._use.accounts.add(self.name, done)
        if done.events:
            busy_s = sum(r.busy_s for r in reports) or spent_s * intake.replicas
            self._use.limits.observe(self.name, busy_s, done.events)
        if reports and self.grouping.traits.wants_reports:
            self.grouping.learn(feedback(self.grouping, reports, intake.replicas, spent_s))


@contextmanager
def session_settings(spark: SparkSession, pool: str, conf: Mapping[str, str]) -> Iterator[None]:
    """Session settings that a query started inside keeps for itself."""
    before = {k: spark.conf.get(k) for k in conf}
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
    for k, v in conf.items():
        spark.conf.set(k, v)
    try:
        yield
    finally:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
        for k, old in before.items():
            if old is not None:
                spark.conf.set(k, old)
