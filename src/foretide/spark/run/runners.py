"""Runs one micro-batch's events through an operator's function: one runner per kind of operator.

A runner spreads the events over the replicas, applies the function, has the result written, and
returns what it measured. It knows nothing of batches, checkpoints or deliveries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark import SparkContext
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from foretide.balance.grouping import Grouping, cost_learner
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.wiring import Wired, apply_frame
from foretide.spark.run.placing import placed_frame
from foretide.spark.worker.batches import run_batches
from foretide.spark.worker.columns import STAMP
from foretide.spark.worker.meter import Report, Reports
from foretide.spark.worker.partitioning import spread
from foretide.spark.worker.placed import Deal, run_placed
from foretide.spark.worker.tasks import run_events
from foretide.spark.worker.work import Work

Write = Callable[[DataFrame], None]


@dataclass(frozen=True)
class Portion:
    """Events to run at once on ``replicas`` tasks. ``arrived_at`` stamps those that carry no stamp;
    ``progress`` is the prefix of the files in which tasks report on the way. Where replicas sit on
    chosen executors, ``locations`` has Spark's name of each one's and ``files`` hold the events.
    ``shed`` is the share of the events that are too many for the queue.
    """

    frame: DataFrame
    replicas: int
    arrived_at: float
    progress: str
    files: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    shed: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What a runner measured. ``events`` is None where the runner cannot count them; ``grouping_s``
    is what tasks spent on assigning events to replicas and on learning from them.
    """

    events: int | None = None
    reports: Sequence[Report] = ()
    grouping_s: float = 0.0


class Runner(Protocol):
    """Applies the operator's function to a portion and has the result written."""

    def run(self, portion: Portion, write: Write) -> Outcome: ...


class TaskRunner:
    """Functions per event and per record batch: they run, and are measured, in Python tasks."""

    def __init__(
        self,
        wired: Wired,
        grouping: Grouping,
        written: StructType,
        sample_every: int,
        follow_every: int = 0,
    ) -> None:
        self._body = run_events if wired.step.kind == "events" else run_batches
        self._grouping = grouping
        self._by = wired.step.grouped_by(grouping.traits.keeps_keys)
        self._written = written
        self._work = Work(
            wired.name,
            wired.step.function,
            to_arrow_schema(written, timezone="UTC"),
            {o: frozenset(s.names) for o, s in wired.gives.items()},
            wired.step.on_error == "divert",
            sample_every,
            cost_learner(grouping),
            follow_every=follow_every,
            timeout_s=wired.timeout_s,
        )
        context = SparkContext.getOrCreate()  # once: PySpark never forgets an accumulator
        self._assigning_s = context.accumulator(0.0)
        self._reports = context.accumulator(dict[int, Report](), Reports())

    def run(self, portion: Portion, write: Write) -> Outcome:
        self._assigning_s.value, self._reports.value = 0.0, {}
        frame, replicas = portion.frame, portion.replicas
        work = replace(
            self._work,
            arrived_at=portion.arrived_at,
            progress=portion.progress,
            shed=portion.shed,
        )
        body = self._body(work, self._reports.add)
        if portion.locations:
            schema = to_arrow_schema(frame.schema, timezone="UTC")
            body = run_placed(body, Deal(replicas, self._grouping, self._by, schema))
            placed = placed_frame(frame.sparkSession, portion.files, portion.locations)
        else:
            placed = spread(frame, self._grouping, replicas, self._by, self._assigning_s.add)
        write(placed.mapInArrow(body, self._written))
        reports = sorted(self._reports.value.values(), key=lambda r: r.replica)
        grouping_s = self._assigning_s.value + sum(r.learning_s for r in reports)
        return Outcome(sum(r.processed + r.late for r in reports), reports, grouping_s)


class FrameRunner:
    """A stateless DataFrame function. Events of sources that are not ours are counted as they pass;
    the others are known beforehand.
    """

    def __init__(self, wired: Wired, grouping: Grouping) -> None:
        self._step = wired.step
        self._grouping = grouping
        self._by = wired.step.grouped_by(grouping.traits.keeps_keys)
        self._counts = any(not isinstance(s.open, Generator) for s in wired.sources)

    def run(self, portion: Portion, write: Write) -> Outcome:
        observation, frame = Observation(), portion.frame
        if self._counts:
            frame = frame.observe(observation, sf.count(sf.lit(1)).alias("events"))
        placed = spread(frame, self._grouping, portion.replicas, self._by)
        write(_restamped(apply_frame(self._step, placed)))
        return Outcome(int(observation.get["events"]) if self._counts else None)


class StatefulRunner:
    """A stateful DataFrame function: the query itself has applied it, in a fixed number of state
    partitions; here its tasks become ``replicas``. On chosen executors every partition stays a task
    of its own: tasks that Spark puts together keep only the host of where they should run.
    """

    def run(self, portion: Portion, write: Write) -> Outcome:
        frame = portion.frame
        write(_restamped(frame if portion.locations else frame.coalesce(portion.replicas)))
        return Outcome()


def runner_of(
    wired: Wired,
    grouping: Grouping,
    written: StructType,
    sample_every: int,
    follow_every: int = 0,
) -> Runner:
    """The runner of an operator's kind."""
    if wired.stateful:
        return StatefulRunner()
    if wired.step.kind == "frame":
        return FrameRunner(wired, grouping)
    return TaskRunner(wired, grouping, written, sample_every, follow_every)


def _restamped(frame: DataFrame) -> DataFrame:
    """A function that dropped the stamps (an aggregation, say) starts new ones."""
    return frame if STAMP in frame.columns else frame.withColumn(STAMP, sf.lit(time.time()))
