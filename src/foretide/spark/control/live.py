"""A pipeline under the loop: session, probe, actuator, journal, and a clean end.

Everything between the probe and the actuator is the loop's own code; this module only joins the two
ends to it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark.cloudpickle
from pyspark.sql import SparkSession

from foretide.balance import GROUPINGS
from foretide.clock import WallClock
from foretide.control import ModeSwitch, control_path
from foretide.errors import ForetideError, InvalidConfig
from foretide.forecast_memory import ForecastMemory
from foretide.journal import Journal, Run
from foretide.learned import Learned, forecasts_path, learned_path
from foretide.load import Load
from foretide.model import Decision, Mode, Prices
from foretide.spark.control.actuator import PipelineActuator
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.java import check_java, java_has_ended, shielded
from foretide.spark.control.lead_time import LeadTimes, default_path
from foretide.spark.control.probe import PipelineProbe
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.run.placing import SETTINGS
from foretide.spark.run.running import Running
from foretide.spark.run.sessions import session
from foretide.systems import System

Observer = Callable[[Decision], None]
DAY_S = 86_400.0
KEPT = 10_000
"""Decisions that a live run keeps in memory: 28 hours at windows of 10 s, about 40 MB."""


@dataclass(frozen=True)
class LiveRun:
    """What to run and where: ``folder`` holds the journal, Spark's log, what directory sinks hold
    in ``output/``, and edges and checkpoints in ``pipeline/``.

    ``until_idle`` ends the run a window after every generated load has come to its end and nothing
    waits any more. ``preload`` names modules that the operators' functions need, loaded once
    instead of in every worker. ``share`` of the events is promised within the target;
    ``spark_settings`` win over Foretide's own. ``past`` is the load until now, to learn
    from; it may depend on the seconds since the pipeline's first start. ``profile`` are
    service times measured before the run, the least that is taken. ``pool`` replicas of every
    operator have slots from the start, so that one is active from its next micro-batch on; no
    operator has more.
    """

    pipeline: Pipeline
    system: System
    folder: Path
    mode: Mode = "advise"
    window_s: float = 10.0
    target_latency_s: float | None = None
    master: str = "local[32]"
    short_run: bool = False
    until_idle: bool = False
    preload: tuple[str, ...] = ()
    prices: Prices = field(default_factory=Prices)
    share: float | None = None
    spark_settings: Mapping[str, str] = field(default_factory=dict)
    past: Load | Callable[[float], Load] | None = None
    profile: Mapping[str, float] = field(default_factory=dict)
    pool: int | None = None

    @property
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    def go(
        self,
        observe: Observer = lambda decision: None,
        steps: int | None = None,
        spark: SparkSession | None = None,
        started: Callable[[Run], None] = lambda run: None,
        stopping: Callable[[], None] = lambda: None,
        ended: Callable[[Running], None] = lambda running: None,
    ) -> tuple[Run, list[Decision]]:
        """Run until SIGINT, SIGTERM or ``steps`` windows; what ran and its newest decisions (the
        journal holds all of them). Raises PipelineFailed when an operator does.

        ``started`` is called once the first queries run; ``observe`` after every window,
        ``stopping`` when the loop has ended and batches under way have not, ``ended`` when the
        queries have stopped. Without ``spark`` a session is made and stopped again.
        """
        if self.pool is not None:
            self.pipeline.limit_replicas(self.pool)
        own = spark is None
        placing = SETTINGS if self.system.places_operators else {}
        if spark is None:
            check_java()
            with errors_to(self.folder / "spark.log"), shielded():
                spark = session(
                    self.pipeline.name,
                    self.master,
                    self.short_run,
                    {**placing, **self.spark_settings},
                    preload=self._preload(),
                )
        try:
            with Running(
                self.pipeline,
                spark,
                self.folder / "pipeline",
                self.system.grouping,
                output=self.folder / "output",
            ) as running:
                record = self._loop(running, observe, steps, started)
                stopping()
            ended(running)
            return record
        finally:
            if own:
                spark.stop()

    def _preload(self) -> tuple[str, ...]:
        """Modules of groupings that compile code: workers should not do that one by one."""
        chosen = [self.system.grouping, *(s.grouping for s in self.pipeline.steps.values())]
        names = sorted({c for c in chosen if isinstance(c, str)})
        compiled = [name for name in names if GROUPINGS.build(name).traits.compiled]
        return tuple(GROUPINGS[name].target.partition(":")[0] for name in compiled)

    def _loop(
        self, running: Running, observe: Observer, steps: int | None, started: Callable[[Run], None]
    ) -> tuple[Run, list[Decision]]:
        clock, stop = WallClock(), threading.Event()
        executors = ExecutorPool(running.spark, LeadTimes(default_path()))
        probe = PipelineProbe(running, executors, self.target_latency_s)
        run = self._header(running, clock.now())
        recorder = Recorder(stop, Ending(running, self.until_idle))
        try:
            with (
                Journal(self.journal, run) as journal,
                ModeSwitch(control_path(self.journal), self.mode) as mode,
            ):
                actuator = PipelineActuator(running, executors, self.pool)

                def record(decision: Decision) -> None:
                    notes = learned.note, forecasts.note, actuator.settle
                    recorder(decision, (journal.append, observe, *notes))

                system = self._with_past(run.started_at, running.started_at)
                if self.mode == "act":
                    actuator.resume()
                promised = system.promised(self.target_latency_s, self.share)
                loop = promised.priced(self.prices).autoscaler(
                    running.topology,
                    probe,
                    actuator,
                    mode,
                    record,
                    train_beside=True,
                    effect_check=True,
                )
                loop.history.benchmarked(self.profile)
                loop.history.start_from(running.service_times_s(), running.selectivities())
                memory = ForecastMemory(loop, promised.forecasts_as, self.window_s, run.started_at)
                with (
                    Learned(
                        learned_path(self.journal, self.system.planner), loop.planner
                    ) as learned,
                    Learned(
                        forecasts_path(self.journal, promised.forecaster), memory, every=10
                    ) as forecasts,
                ):
                    started(run)
                    loop.run(clock, self.window_s, stop, steps)
        finally:  # why the pipeline failed comes before what could not be written since
            if recorder.ended or not stop.is_set():  # workers may end before us at a signal
                running.check()
        return run, list(recorder.kept)

    def _header(self, running: Running, now: float) -> Run:
        """What the journal says of the run before its decisions."""
        return Run(
            self.pipeline.name,
            self.system.name,
            running.topology,
            self.window_s,
            now,
            self.mode,
            self.target_latency_s,
            self.prices,
            settings={
                "grouping": self.system.grouping,
                "master": self.master,
                "trigger_s": self.pipeline.trigger_s,
                **({} if self.pool is None else {"pool": self.pool}),
                "spark_ui": running.spark.sparkContext.uiWebUrl,
            },
            share=self.share,
        )

    def _with_past(self, now: float, pipeline_started_at: float) -> System:
        """The system with the load before ``now``. A dated one is placed by its dates, and by the
        time of day where it is older than a day; any other ended just now.
        """
        if self.past is None:
            return self.system
        load = self.past if isinstance(self.past, Load) else self.past(now - pipeline_started_at)
        ended_at = now if load.started_at is None else load.started_at + load.duration_s
        return self.system.remembering(load.before((now - ended_at) % DAY_S, self.window_s))


class Ending:
    """Whether a run is over: asked at the end of every window. With ``until_idle`` a whole window
    must have been idle: what became idle since the window was measured is in no figure yet.
    """

    def __init__(self, running: Running, until_idle: bool) -> None:
        self.running = running
        self.until_idle = until_idle
        self.was_idle = False

    def __call__(self) -> bool:
        # a JVM that is killed between two batches fails no query
        if self.running.has_failed or java_has_ended():
            return True
        before, self.was_idle = self.was_idle, self.until_idle and self.running.idle()
        return before and self.was_idle


class Recorder:
    """Hands every decision on, keeps the newest, and sets ``stop`` when the run is over: also when
    the journal cannot be written.
    """

    def __init__(self, stop: threading.Event, over: Callable[[], bool]) -> None:
        self.stop = stop
        self.over = over
        self.kept: deque[Decision] = deque(maxlen=KEPT)
        self.ended = False

    def __call__(self, decision: Decision, takers: Sequence[Observer]) -> None:
        self.kept.append(decision)
        failures: list[Exception] = []
        for take in takers:
            try:
                take(decision)
            except Exception as error:
                failures.append(error)
        if self.over():
            self.ended = True
            self.stop.set()
        if failures:
            raise failures[0]


@contextmanager
def errors_to(file: Path) -> Iterator[None]:
    """Processes started inside write their standard error to ``file``: Spark's talk stays off the
    screen, and is kept.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    saved, log = os.dup(2), os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(log)


def find_pipeline(target: str) -> Pipeline:
    """The pipeline that ``MODULE:NAME`` or ``FILE.py:NAME`` names. Its functions travel to Spark's
    workers by value.
    """
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise InvalidConfig(
            f"'{target}' does not name a pipeline: write MODULE:NAME or FILE.py:NAME"
        )
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(place).stem, place)
            if spec is None or spec.loader is None or not Path(place).is_file():
                raise InvalidConfig(f"there is no file {place}")
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, "")
            module = importlib.import_module(place)
    except ForetideError:
        raise
    except ImportError as error:
        raise InvalidConfig(f"cannot import {place}: {error}") from error
    except (
        Exception
    ) as error:  # the user's own code, whatever it does; a relative name is a TypeError
        raise InvalidConfig(
            f"cannot load {place}: {type(error).__name__}: {error}{_where(error)}"
        ) from error
    found = getattr(module, name, None)
    if not isinstance(found, Pipeline):
        known = ", ".join(k for k, v in vars(module).items() if isinstance(v, Pipeline)) or "none"
        raise InvalidConfig(f"{place} has no pipeline named '{name}'; pipelines there: {known}")
    pyspark.cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return found


def _where(error: Exception) -> str:
    """The innermost line that an error came from, for a person whose own code raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    return (
        f" ({frames[-1].filename}, line {frames[-1].lineno})"
        if frames and not isinstance(error, SyntaxError)
        else ""
    )
