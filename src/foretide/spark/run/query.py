"""One operator as one streaming query: take a batch, run it on the replicas of this moment, deliver
it, account for it.

Exactly once: Spark logs what a batch takes before it runs; the outbox makes all its results visible
by one rename. A batch that was delivered before a crash is skipped when Spark replays it.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from foretide.clock import PAUSE
from foretide.errors import PipelineFailed
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.steps import Source
from foretide.spark.declare.wiring import Wired, apply_frame, open_source, source_part, stamped
from foretide.spark.edge.protocol import Manifest, Piece, plus
from foretide.spark.run.accounts import Accounts, Delivery
from foretide.spark.run.arrivals import Feed, GeneratedFeed, OpenSource, Outside, feeds_of
from foretide.spark.run.batch import BatchRun, Intake
from foretide.spark.run.channels import Channels
from foretide.spark.run.cutting import SLACK, cuts, grouped, spool
from foretide.spark.run.folder import RunFolder
from foretide.spark.run.gaps import Gaps, gaps
from foretide.spark.run.limits import Limits
from foretide.spark.run.output import OutputFolder
from foretide.spark.run.placing import Placement, Seats
from foretide.spark.run.runners import Portion, runner_of
from foretide.spark.run.sessions import session_settings
from foretide.spark.run.state import State, state_of
from foretide.spark.run.state_home import move_state
from foretide.spark.run.stopping import Brake, CutOff
from foretide.spark.run.trees import Trees, merged
from foretide.spark.worker.meter import Report
from foretide.spark.worker.partitioning import feedback

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
    output: OutputFolder
    ending: Callable[[], bool]
    failed: Callable[[str, Exception], PipelineFailed]
    placement: Placement = field(default_factory=Placement)
    trees: Trees | None = None


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
        every = facilities.sample_every
        follow = every if facilities.trees is not None else 0
        self._runner = runner_of(wired, self.grouping, channels.written, every, follow)
        self._last_arrival: float | None = None
        self._last_logged_at: float | None = None
        self._state_seats = Seats()
        self._brake = Brake(self.name)
        self._last_reported = -1
        self._last_events: int | None = None
        self.tidying = threading.Lock()
        self.outside = Outside(self.checkpoint, ())

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
                time.sleep(0.01)
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
        every_s = use.trigger_s if self.wired.sources else 0.0  # an edge waits for events itself
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
        parts, opened = [], list[OpenSource]()
        for source in wired.sources:
            part = open_source(use.spark, source, use.started_at)
            parts.append(source_part(part, wired))
            opened.append(OpenSource(source.name, self._feeds(source, part, opened)))
        self.outside = Outside(self.checkpoint, opened)
        if wired.producers:
            limit_file, pause_s = use.folder.limit_file(self.name), PAUSE * use.trigger_s
            schema = stamped(wired.takes)
            parts.append(self.inbox.stream(use.spark, schema, limit_file, pause_s))
        frame = parts[0]
        for part in parts[1:]:
            frame = frame.unionByName(part, allowMissingColumns=True)
        return frame

    def _feeds(
        self, source: Source, part: DataFrame, before: Sequence[OpenSource]
    ) -> tuple[Feed, ...]:
        if isinstance(source.open, Generator):
            return (GeneratedFeed(source.open, self._use.started_at),)
        return tuple(feeds_of(part, self.checkpoint, sum(len(s.feeds) for s in before)))

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
        run = BatchRun(self.outbox.stage(batch))
        self._use.accounts.begin(self.name, run.progress)
        self._run(frame, intake, run)
        delivery = self._deliver(intake, run)
        if self._use.trees is not None:
            traces = merged(r.traces for r in delivery.reports)
            self._use.trees.delivered(self.name, traces, time.time())
        self.channels.write_sinks(frame.sparkSession, self.outbox, batch)
        for folder in run.files:
            self._use.output.delivered(f"{self.name}/{folder}", batch)
        self._account(intake, delivery)

    def _replay(self, frame: DataFrame, batch: int) -> None:
        """A batch that was delivered before a crash: do only what follows its delivery.

        Spark commits no batch whose state was not written in the same run, so a stateful one
        computes its state again.
        """
        if self.wired.stateful:
            frame.write.format("noop").mode("overwrite").save()
        self.channels.write_sinks(frame.sparkSession, self.outbox, batch)

    def _forget(self, batch: int) -> None:
        """Remove what an earlier batch consumed: Spark has committed it when the next one
        starts.
        """
        if batch >= 0 and (self.checkpoint.root / "offsets" / str(batch)).exists():
            if self._use.folder.durability == "power":
                self.checkpoint.settle(batch)
            self.inbox.discard([p for pieces in self._waiting(batch).values() for p in pieces])
        with self.tidying:  # the output removes what it has gathered
            self.outbox.sweep()

    def _take(self, batch: int) -> Intake:
        sources = self.outside.sizes(batch)
        return Intake(batch, self.checkpoint.instant(batch), self._waiting(batch), sources)

    def _waiting(self, batch: int) -> dict[str, list[Piece]]:
        """Files per producer that a batch takes."""
        if not self.wired.producers:
            return {}
        offsets, start = self.checkpoint.offsets(batch), self.inbox.start()
        return self.inbox.between(offsets.start[-1] or start, offsets.end[-1] or start)

    def _run(self, frame: DataFrame, intake: Intake, run: BatchRun) -> None:
        """Run the batch: whole, or in pieces when it holds much more than its limit."""
        reports = self._use.folder.progress(self.name)
        shutil.rmtree(reports, ignore_errors=True)
        reports.mkdir(parents=True)
        if self.wired.stateful:
            self._run_stateful(frame, intake, run)
            return
        if not self.wired.sources:  # Spark reads the edge itself: no Python task
            if not intake.files:
                return
            frame = self._edge(frame.sparkSession, intake.files)
        if (seats := self._seats()).executors:
            self._run_seated(frame, seats, intake, run)
            return
        if self._fits(intake) or not self._cuts:
            self._run_piece(frame, intake.size, intake, run)
            return
        limit = partial(self._use.limits.of, self.name)
        whole = max((p.events for p in intake.files), default=0) <= SLACK * limit()
        if not self.wired.sources and (whole or not self._use.folder.edges.shares_disk):
            for pieces in grouped(intake.files, limit):
                part = self._edge(frame.sparkSession, pieces)
                self._run_piece(part, sum(p.events for p in pieces), intake, run)
            return
        spooled = spool(frame, run.staging / "spool", limit(), self._use.replicas[self.name])
        self._count(intake, sum(n for _, n in spooled))
        for cut in cuts(spooled, limit):
            part = cut.frame(frame.sparkSession, frame.schema)
            self._run_piece(part, cut.events, intake, run)

    def _run_stateful(self, frame: DataFrame, intake: Intake, run: BatchRun) -> None:
        """Run the batch where the plan names executors: its state is moved there first."""
        seats = self._use.placement.seats(self.name)
        placed = seats.locations and self.query is not None and self._sits(frame, seats)
        if placed:
            self._use.placement.began(self.name, seats, time.time())
        self._run_piece(frame, None, intake, run, seats=seats if placed else None)
        if placed:
            self._use.placement.ended(self.name, time.time())

    def _sits(self, frame: DataFrame, seats: Seats) -> bool:
        """Whether the state is on these executors, or could be moved there."""
        if seats != self._state_seats and self.query is not None:
            root = Path(str(self.checkpoint.root))
            if move_state(frame.sparkSession, self.query, root, seats.locations):
                self._state_seats = seats
        return seats == self._state_seats

    def _seats(self) -> Seats:
        """Where the replicas are to sit: nowhere in particular for stateless DataFrame functions,
        which Spark places, and on edges that executors do not read from a disk.
        """
        on_disk = self._use.folder.edges.shares_disk and self.inbox.on_disk
        able = self.wired.step.kind != "frame" and on_disk
        return self._use.placement.seats(self.name) if able else Seats()

    def _run_seated(self, frame: DataFrame, seats: Seats, intake: Intake, run: BatchRun) -> None:
        """Run the whole batch on the executors that the plan names: their tasks read its files."""
        files = tuple(p.name for p in intake.files)
        if self.wired.sources:
            limit = self._use.limits.of(self.name)
            spooled = spool(frame, run.staging / "spool", limit, 1)
            self._count(intake, sum(n for _, n in spooled))
            files = tuple(str(path) for path, _ in spooled)
        if files:
            self._use.placement.began(self.name, seats, time.time())
            self._run_piece(frame, intake.size, intake, run, files, seats)
            self._use.placement.ended(self.name, time.time())

    @property
    def _cuts(self) -> bool:
        """Whether a large batch can be cut: by pieces of its edges, or on a disk that all share."""
        return self._use.folder.edges.shares_disk or not self.wired.sources

    def _edge(self, spark: SparkSession, pieces: Sequence[Piece]) -> DataFrame:
        tasks = self._use.replicas[self.name]
        return self.inbox.frame(spark, stamped(self.wired.takes), pieces, tasks)

    def _fits(self, intake: Intake) -> bool:
        """Whether a batch is about as large as its limit. Where its size is unknown, it is taken to
        be as large as the one before; the first one is cut.
        """
        expected = self._last_events if intake.size is None else intake.size
        return expected is not None and expected <= SLACK * self._use.limits.of(self.name)

    def _count(self, intake: Intake, events: int) -> None:
        """The batch turned out to hold ``events``: those of the source that did not say."""
        others = [name for name, n in intake.sources.items() if n is None]
        if others:
            counted = intake.counted
            counted[others[0]] = events - sum(counted.values())
            sources = {name: counted.get(name, 0) for name in intake.sources}
            self.outside.counted(intake.batch, sources)

    def _run_piece(
        self,
        frame: DataFrame,
        events: int | None,
        intake: Intake,
        run: BatchRun,
        files: tuple[str, ...] = (),
        seats: Seats | None = None,
    ) -> None:
        """Run some of the batch's events, write what comes of them, and learn how long it took."""
        replicas = self.in_flight = self._use.replicas[self.name]
        per_file = self._use.limits.per_file(self.channels.consumers)
        reports = self._use.folder.progress(self.name)
        run.reporting = str(reports / f"{intake.batch}.{len(run.outcomes)}-")
        if self.grouping.phase is not None:
            run.phases.append(self.grouping.phase)
        begun = time.perf_counter()
        outcome = self._runner.run(
            Portion(
                frame,
                replicas,
                intake.logged_at,
                run.reporting,
                files,
                seats.of(replicas) if seats else (),
                self._shed(events),
            ),
            lambda result: self.channels.write(result, self.outbox, run.staging, per_file),
        )
        spent_s = time.perf_counter() - begun
        if outcome.events is None and events is not None:
            outcome = replace(outcome, events=events)
        run.finish(outcome, self.outbox.collect(self.channels.outlets, run.staging))
        done = outcome.events if outcome.events is not None else intake.size
        late = sum(r.late for r in outcome.reports)
        if done and self.wired.drops:
            self._use.limits.dropped(self.name, late / done)
        done = (done or 0) - late
        if done:
            busy_s = sum(r.busy_s for r in outcome.reports) or spent_s * replicas
            overhead_s = max(0.0, spent_s - busy_s / replicas)
            self._use.limits.observe(self.name, busy_s, done, overhead_s)
        if outcome.reports and self.grouping.traits.wants_reports:
            self.grouping.learn(feedback(self.grouping, outcome.reports, replicas, spent_s))

    def _shed(self, events: int | None) -> float:
        """The share of the next events to drop: as many as wait beyond the operator's limit."""
        most = self.wired.queue_limit
        if most is None:
            return 0.0
        waiting = self._use.accounts.backlog(self.name, time.time()) or 0
        return min(1.0, max(0, waiting - most) / max(1, events or waiting))

    def _deliver(self, intake: Intake, run: BatchRun) -> Delivery:
        """Make the results visible, with totals since the first start."""
        shutil.rmtree(run.staging / "spool", ignore_errors=True)
        consumed, reports = self._consumed(intake, run.events), run.reports
        latency_of = None if reports else self.outbox.stamps(run.staging, run.files)
        emitted = {folder: sum(n for _, n in held) for folder, held in run.files.items()}
        before = self._use.accounts.latest(self.name)
        totals = plus(before.consumed, consumed), plus(before.delivered, emitted)
        replicas = self.in_flight or self._use.replicas[self.name]
        manifest = Manifest(intake.batch, time.time(), replicas, *totals, run.files)
        self.outbox.deliver(run.staging, manifest)
        grouping_s = sum(o.grouping_s for o in run.outcomes)
        return Delivery(
            manifest,
            consumed,
            emitted,
            reports,
            latency_of=latency_of,
            grouping_s=grouping_s,
            phases=tuple(run.phases),
            longest_s=run.longest_s,
        )

    def _consumed(self, intake: Intake, events: int | None) -> dict[str, int]:
        """Events that the batch took, per input: counted where they were, else as its offsets
        say.
        """
        generated = {s.name for s in self.wired.sources if isinstance(s.open, Generator)}
        consumed = intake.counted
        others = [s.name for s in self.wired.sources if s.name not in generated]
        if events is not None and others:
            first = others[0]
            consumed[first] = events - sum(n for name, n in consumed.items() if name != first)
        elif self.wired.stateful and others and others[0] not in consumed:
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

    def kept_state(self) -> State | None:
        """What a stateful operator keeps, after its last batch; None before, and for any other."""
        return state_of(self.query) if self.wired.stateful and self.query is not None else None

    def _gaps(self, intake: Intake, reports: Sequence[Report]) -> Gaps:
        """Times between arrivals: of what producers delivered, or between the stamps of a source's
        events where the reports hold all of them.
        """
        arrivals = [(p.delivered_at, p.events) for p in intake.files]
        if self.wired.sources:
            if any(len(r.stamps) < r.processed for r in reports):
                self._last_arrival = None
                return Gaps()
            arrivals = [(float(at), 1) for r in reports for at in r.stamps]
        between = gaps(arrivals, self._last_arrival)
        self._last_arrival = between.last_at
        return between

    def _account(self, intake: Intake, delivery: Delivery) -> None:
        """Count the delivered batch."""
        now, reports = time.time(), delivery.reports
        waited_s = sum(now * r.processed - r.stamp_sum for r in reports) if reports else None
        if intake.pieces:
            waited_s = intake.waited_s(now) + self._waited_outside_s(intake, now)
        self._last_logged_at = intake.logged_at
        done = replace(
            delivery,
            manifest=replace(delivery.manifest, at=now),
            waited_s=waited_s,
            took_s=max(0.0, now - intake.logged_at),
            gaps=self._gaps(intake, reports),
        )
        self._use.accounts.add(self.name, done)
        self._last_events = done.events
        if self.wired.sources:
            from_outside = sum(done.consumed.get(s.name, 0) for s in self.wired.sources)
            self.outside.finished(intake.batch, from_outside)

    def _waited_outside_s(self, intake: Intake, now: float) -> float:
        """Seconds that events from sources waited in a batch that also holds events from edges,
        whose stamps are those of their own entry: they came evenly since the batch before.
        """
        events = sum(n or 0 for n in intake.sources.values())
        since_s = max(0.0, intake.logged_at - (self._last_logged_at or intake.logged_at))
        return events * (now - intake.logged_at + since_s / 2)
