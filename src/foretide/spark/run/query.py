"""One operator as one streaming query: take a batch, spread it over the replicas of this moment,
work, deliver.

Exactly once: Spark logs what a batch takes before it runs; the outbox makes all it gives visible by
one rename. A batch that was delivered before a crash is skipped when Spark replays it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from foretide.balance.grouping import cost_learner
from foretide.clock import PAUSE, POLL_S
from foretide.errors import PipelineFailed
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.wiring import Wired, apply_frame, open_source, stamped
from foretide.spark.edge.checkpoint import Checkpoint
from foretide.spark.edge.edges import (
    File,
    Inbox,
    Manifest,
    Outbox,
    Piece,
    discard,
    plus,
    share,
    tidy,
)
from foretide.spark.edge.source import edge_stream
from foretide.spark.run.ledger import Batch
from foretide.spark.run.stopping import Brake, CutOff
from foretide.spark.worker.columns import ERROR, OUT, STAMP, TO
from foretide.spark.worker.meter import Report, Reports
from foretide.spark.worker.partitioning import feedback, spread
from foretide.spark.worker.stamps import read_back
from foretide.spark.worker.tasks import Work, run_batches, run_events

if TYPE_CHECKING:
    from foretide.spark.run.running import Running

START_TRIES = 3
DEAD = "dead"


class OperatorQuery:
    """Runs one wired operator until stopped. Its batches run one after another, on a thread of
    Spark's.
    """

    def __init__(self, wired: Wired, running: Running) -> None:
        self.wired = wired
        self.name = wired.name
        self.running = running
        self.outbox = Outbox(running.path / "edges" / self.name)
        self.checkpoint = Checkpoint(running.path / "checkpoints" / self.name)
        self.inbox = Inbox(running.path / "edges", self.name, wired.producers)
        self.grouping = wired.step.new_grouping(running.grouping)
        self._by = wired.step.grouped_by(self.grouping.traits.keeps_keys)
        self._grouping_s = 0.0
        context = running.spark.sparkContext  # made once: PySpark never forgets an accumulator
        self._assigning_s, self._reports = (
            context.accumulator(0.0),
            context.accumulator(dict[int, Report](), Reports()),
        )
        self.in_flight: int | None = None
        self._reported = -1
        self.query: StreamingQuery | None = None
        self._brake = Brake(self.name)
        self._work = Work(
            self.name,
            wired.step.function,
            to_arrow_schema(wired.written, timezone="UTC"),
            {o: frozenset(s.names) for o, s in wired.gives.items()},
            wired.diverts,
            running.pipeline.sample_every,
            cost_learner(self.grouping),
        )

    def start(self) -> None:
        """Return when the query has opened its sources.

        Spark gives a source's Python process 10 seconds to come up, which a busy machine can miss,
        so queries start one after another and one that failed this way is started again.
        """
        for tries_left in reversed(range(START_TRIES)):
            self._start()
            assert self.query is not None
            while self.query.isActive and not self.query.status["message"].startswith(
                ("Waiting", "Processing")
            ):
                time.sleep(0.05)
            error = self.query.exception()
            if error is None or tries_left == 0 or "failed to connect back" not in str(error):
                return

    def _start(self) -> None:
        spark, step = self.running.spark, self.wired.step
        parts = [open_source(spark, s, self.running.started_at) for s in self.wired.sources]
        taken = self.wired.takes if self.wired.stamped_late else stamped(self.wired.takes)
        parts = [p.select(*taken.names) for p in parts]
        if self.wired.producers:
            where = (self.running.path / "edges", self.name, self.wired.producers)
            pause_s = PAUSE * self.running.pipeline.trigger_s
            parts.append(
                edge_stream(
                    spark,
                    where,
                    stamped(self.wired.takes),
                    self.running.limit_file(self.name),
                    pause_s,
                )
            )
        frame = parts[0]
        for part in parts[1:]:
            frame = frame.unionByName(part)
        conf = (
            {"spark.sql.shuffle.partitions": str(step.max_replicas)} if self.wired.stateful else {}
        )
        if self.wired.stateful:
            frame = apply_frame(step, frame)
        every_s = (
            self.running.pipeline.trigger_s
            if self.wired.sources
            else min(POLL_S, self.running.pipeline.trigger_s)
        )
        with self.running.settings(self.name, conf):
            self.query = (
                frame.writeStream.foreachBatch(self._batch)
                .queryName(f"{self.running.pipeline.name}.{self.name}")
                .outputMode(step.output_mode)
                .option("checkpointLocation", str(self.checkpoint.root))
                .trigger(processingTime=f"{round(every_s * 1000)} milliseconds")
                .start()
            )

    def stop(self, until: float) -> None:
        if self.query is not None:
            self._brake.stop(self.query, until)

    def _batch(self, frame: DataFrame, batch: int) -> None:
        try:
            if self.running.ending:
                self._brake.hold(lambda: self.query)
            self._step(frame, batch)
        except Exception as error:  # what goes to Spark is short: it looks through the whole text in a way that long ones overflow
            ended = self.running.ending
            raise CutOff(self.name) if ended else self.running.failed(self.name, error) from None
        finally:
            self.in_flight = None

    def _step(self, frame: DataFrame, batch: int) -> None:
        self._forget(batch - 1)
        if self.outbox.has(batch):
            self._again(frame, batch)
            return
        replicas = self.in_flight = self.running.replicas[self.name]
        pieces, generated = self._taken(batch)
        staging = self.outbox.stage(batch)
        begun = time.perf_counter()
        logged_at = self.checkpoint.instant(batch)
        work = replace(self._work, arrived_at=logged_at)
        count, reports = self._run(
            frame, replicas, [p for found in pieces.values() for p in found], work, staging
        )
        spent_s = time.perf_counter() - begun
        consumed = {p: sum(f.events for f in found) for p, found in pieces.items()} | generated
        if count is not None and (
            others := [s.name for s in self.wired.sources if s.name not in generated]
        ):
            consumed[others[0]] = count - sum(consumed.values())
        if self.wired.stateful and self.wired.sources and not pieces and not generated:
            consumed[self.wired.sources[0].name] = self._counted_late()
        files = self._folders(staging)
        latency_of = None if reports else read_back(staging, files)
        delivered = {folder: sum(n for _, n in found) for folder, found in files.items()}
        before = self.running.ledger.latest(self.name)
        totals = plus(before.consumed, consumed), plus(before.delivered, delivered)
        manifest = Manifest(batch, time.time(), replicas, *totals, files)
        self.outbox.deliver(staging, manifest)
        self._write_sinks(frame, batch)
        now = time.time()
        waited_s = sum(now * r.processed - r.stamp_sum for r in reports) if reports else None
        if pieces:
            waited_s = sum(
                f.events * (now - f.delivered_at) for found in pieces.values() for f in found
            )
        took_s = max(0.0, now - logged_at)
        done = replace(manifest, at=now)
        self.running.delivered(
            self,
            Batch(
                done,
                consumed,
                delivered,
                reports,
                None,
                waited_s,
                latency_of,
                self._grouping_s,
                took_s,
            ),
            spent_s,
        )
        if reports and self.grouping.traits.wants_reports:
            self.grouping.learn(feedback(self.grouping, reports, replicas, spent_s))

    def _again(self, frame: DataFrame, batch: int) -> None:
        """A batch that was delivered before a crash: only what comes after its delivery is still to
        do.

        Spark commits no batch whose state was not written in the same run, so a stateful one
        computes its state again.
        """
        if self.wired.stateful:
            frame.write.format("noop").mode("overwrite").save()
        self._write_sinks(frame, batch)

    def _counted_late(self) -> int:
        """Events of the batch before, as Spark reports them: a stateful function on a source that
        is not ours is counted one batch late.
        """
        progress = self.query.lastProgress if self.query is not None else None
        if progress is None or progress.batchId == self._reported:
            return 0
        self._reported = progress.batchId
        return int(progress.numInputRows)

    def _taken(self, batch: int) -> tuple[dict[str, list[Piece]], dict[str, int]]:
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

    def _forget(self, batch: int) -> None:
        """Remove what an earlier batch consumed: Spark has committed it when the next one starts."""
        if batch >= 0 and (self.checkpoint.root / "offsets" / str(batch)).exists():
            discard([p.path for found in self._taken(batch)[0].values() for p in found])
        self.outbox.sweep()

    def _run(
        self, frame: DataFrame, replicas: int, pieces: Sequence[Piece], work: Work, staging: Path
    ) -> tuple[int | None, list[Report]]:
        """Work on the batch and write what it gives; events seen (None: not counted here) and
        reports.
        """
        w, self._grouping_s = self.wired, 0.0
        if not w.sources and not pieces and not w.stateful:
            return None, []
        if w.stateful:
            self._write(self._restamped(frame.coalesce(replicas)), staging)
            return None, []
        if not w.sources:
            frame = frame.sparkSession.read.schema(stamped(w.takes)).parquet(
                *[str(p.path) for p in pieces]
            )
        if w.step.kind == "frame":
            foreign = any(
                not isinstance(s.open, Generator) for s in w.sources
            )  # what else it takes is known beforehand
            observed = Observation()
            counted = (
                frame.observe(observed, sf.count(sf.lit(1)).alias("events")) if foreign else frame
            )
            placed = spread(counted, self.grouping, replicas, self._by)
            self._write(self._restamped(apply_frame(w.step, placed)), staging)
            return (int(observed.get["events"]) if foreign else None), []
        self._assigning_s.value, self._reports.value = 0.0, {}
        placed = spread(frame, self.grouping, replicas, self._by, self._assigning_s.add)
        body = run_events if w.step.kind == "events" else run_batches
        self._write(placed.mapInArrow(body(work, self._reports.add), w.written), staging)
        reports = sorted(self._reports.value.values(), key=lambda r: r.replica)
        self._grouping_s = self._assigning_s.value + sum(r.learning_s for r in reports)
        return sum(r.processed for r in reports), reports

    @staticmethod
    def _restamped(frame: DataFrame) -> DataFrame:
        """A function that lost the stamps (an aggregation, say) starts new ones."""
        return frame if STAMP in frame.columns else frame.withColumn(STAMP, sf.lit(time.time()))

    def _write(self, frame: DataFrame, staging: Path) -> None:
        """One pass over the result into ``staging/data``: one folder per channel when there is more
        than one.
        """
        channels, target = self.wired.channels, str(staging / "data")
        if not channels and not self.wired.diverts:
            frame.write.format("noop").mode("overwrite").save()
            return
        limit = self.running.least_limit(
            c.partition(".")[2] for channel in channels for c in channel.folders
        )
        if (
            len(channels) == 1
            and not self.wired.diverts
            and None in self.wired.gives
            and channels[0].predicate is None
        ):
            if (
                self.wired.step.kind == "frame"
            ):  # its columns may stand in any order; a task's are as written
                frame = frame.select(*channels[0].columns)
            frame.write.option("maxRecordsPerFile", limit).parquet(target)
            return
        going = [sf.when(self._goes(i), sf.lit(str(i))) for i in range(len(channels))]
        if self.wired.diverts:
            going.append(sf.when(sf.col(ERROR).isNotNull(), sf.lit(DEAD)))
        sent = frame.withColumn(TO, sf.explode(sf.array_compact(sf.array(*going))))
        sent.write.partitionBy(TO).option("maxRecordsPerFile", limit).parquet(target)

    def _goes(self, channel: int) -> Column:
        c = self.wired.channels[channel]
        test = sf.lit(True)
        if self.wired.diverts:
            test = test & sf.col(ERROR).isNull()
        if c.output is not None:
            test = test & (sf.col(OUT) == c.output)
        return test & sf.expr(f"({c.predicate})") if c.predicate else test

    def _folders(self, staging: Path) -> dict[str, tuple[File, ...]]:
        """Turn what was written into one folder per reader; the files of each."""
        data, found = staging / "data", {}
        channels = self.wired.channels
        for i, channel in enumerate(channels):
            written = data / f"{TO}={i}" if (data / f"{TO}={i}").is_dir() else data
            if not written.is_dir() or (
                written == data and any(e.is_dir() for e in data.iterdir())
            ):
                continue
            files = tidy(written)
            if files:
                first, *others = channel.folders
                os.rename(written, staging / first)
                share(staging / first, [staging / o for o in others])
                found.update(dict.fromkeys(channel.folders, files))
        dead = data / f"{TO}={DEAD}"
        if dead.is_dir() and (files := tidy(dead)):
            os.rename(dead, staging / DEAD)
            found[DEAD] = files
        shutil.rmtree(data, ignore_errors=True)
        return found

    def _write_sinks(self, frame: DataFrame, batch: int) -> None:
        """Hand a delivered batch to the users' own writers; what they took is not kept here.

        After the delivery, so that a batch which comes again holds what it held, also when the
        function is not deterministic.
        """
        for sink in self.wired.sinks:
            folder = self.outbox.folder(batch) / f"sink.{sink.name}"
            if sink.write is None or not folder.is_dir():
                continue
            try:
                sink.write(
                    frame.sparkSession.read.schema(self.wired.gives[sink.input.output]).parquet(
                        str(folder)
                    ),
                    batch,
                )
            except Exception as error:
                raise PipelineFailed(
                    f"the writer of sink '{sink.name}' failed on batch {batch}: {error}"
                ) from error
            self.outbox.drop(folder)
