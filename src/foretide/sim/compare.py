"""Compare: systems on one app under one load, each through the same loop in a simulated
environment, side by side on the machine's cores.

Owns what a case is (app, load, window, prices, seed), the true need of its load, and the sharing
out of work. The figures are ``foretide.figures.metrics``'s; the environment is passed in or the
simulator's own.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import Empty
from typing import Any, Literal, Protocol, cast, get_args

import numpy as np

from foretide.apps import App
from foretide.errors import InvalidConfig, MissingExtra, unknown
from foretide.figures.account import PROMISED
from foretide.figures.comparison import Comparison, Conditions
from foretide.figures.record import RunRecord
from foretide.figures.summary import Summary, summarize
from foretide.figures.windows import merged
from foretide.load import Load
from foretide.model import Array, Decision, Plan, Prices, Snapshot
from foretide.plan.clairvoyant_target import bound
from foretide.plan.future import Future as LoadFuture
from foretide.quantities import Counts, needs
from foretide.sim.reconfigure import ExecutorStarts, Pool
from foretide.systems import System

Engine = Literal["auto", "events", "batch", "fluid"]
EVENTS_AT_MOST = 60e6
WINDOWS_AT_MOST = 20_000_000
PARTS_AT_MOST = 10
"""Parts of a window whose loads the bound tells apart, where the load has shorter intervals."""
BOUND_AT_MOST = 5_000
"""Windows for which the least cost of the promise is computed."""

Progress = Callable[[str, int, int], None]
"""Told (system, windows done, windows in all) now and then."""


def engine_named(name: str) -> Engine:
    """The engine by its name, or an error that names the nearest."""
    if name not in get_args(Engine):
        raise unknown("engine", name, get_args(Engine))
    return cast(Engine, name)


class SimulatedEnvironment(Protocol):
    """Probe and Actuator of a simulated pipeline whose clock starts at 0."""

    def read(self, now: float) -> Snapshot: ...

    def apply(self, plan: Plan) -> None: ...

    def latencies_ms(self) -> tuple[Array, Array | None] | None:
        """End-to-end latencies of all events that left, and how many events each stands for (None:
        one); None when not known.
        """
        ...

    def forget_latencies(self) -> None:
        """Only events that leave from now on count: called at the end of a warm-up."""
        ...


@dataclass(frozen=True, eq=False)
class Scenario:
    """One app under one load. Every system starts from the replicas that the first window needs.

    New replicas work ``lead_s`` seconds after they are requested. With ``cores`` they need slots in
    executors of that many cores, and the executors take that long to start. None leaves it to the
    options (by default: at once). Figures are those after ``warm_up_s`` seconds, in whole rows and
    windows: until then systems only learn.
    """

    app: App
    load: Load
    window_s: float
    seed: int = 1
    prices: Prices = field(default_factory=Prices)
    engine: Engine = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    lead_s: float | None = None
    cores: int | None = None
    share: float = PROMISED
    warm_up_s: float = 0.0

    def __post_init__(self) -> None:
        if self.lead_s is not None and not (math.isfinite(self.lead_s) and self.lead_s >= 0):
            raise InvalidConfig(f"--lead {self.lead_s:g}: give 0 seconds or more")
        if self.cores is not None and self.cores < 1:
            raise InvalidConfig(f"--cores {self.cores}: an executor has 1 core or more")
        if not self.window_s > 0:
            raise InvalidConfig(f"--window {self.window_s:g}: a window lasts more than 0 seconds")
        if self.load.duration_s / self.window_s > WINDOWS_AT_MOST:
            raise InvalidConfig(
                f"load '{self.load.name}' lasts {self.load.duration_s:g} s, more than "
                f"{WINDOWS_AT_MOST:,} windows of "
                f"{self.window_s:g} s: choose a longer window or a higher speed"
            )
        if self.load.duration_s * (1 + 1e-12) < self.window_s:
            raise InvalidConfig(
                f"load '{self.load.name}' lasts {self.load.duration_s:g} s, less than one window "
                f"of {self.window_s:g} s: "
                "choose a shorter window or a lower speed"
            )
        if self.warm_up_s and not 0 < self.warm_up_s <= self.load.duration_s - self.window_s:
            raise InvalidConfig(
                f"--warm-up {self.warm_up_s:g}: load '{self.load.name}' lasts "
                f"{self.load.duration_s:g} s; leave at least a window of {self.window_s:g} s of it"
            )

    @property
    def windows(self) -> int:
        return len(self.load.rates(self.window_s))

    @property
    def measured(self) -> Scenario:
        """The part after the warm-up, on its own."""
        step_s = max(self.load.interval_s, self.window_s)
        warm_up_s = math.floor(self.warm_up_s / step_s * (1 + 1e-12)) * step_s
        if not warm_up_s:
            return replace(self, warm_up_s=0.0)
        return replace(self, load=self.load.last(self.load.duration_s - warm_up_s), warm_up_s=0.0)

    @property
    def changes(self) -> dict[str, Any]:
        """The options of the simulation, with the reconfiguration that the lead time asks for."""
        if self.lead_s is None and self.cores is None:
            return dict(self.options)
        lead_s = self.lead_s or 0.0
        how = Pool(lead_s) if self.cores is None else ExecutorStarts(self.cores, lead_s)
        return {**self.options, "reconfiguration": how}

    @property
    def mode(self) -> Engine:
        """The requested engine. auto is ``events`` unless there are too many to simulate in half a
        minute.
        """
        if self.engine != "auto":
            return self.engine
        return (
            "events"
            if self.load.total * sum(self.app.visits().values()) <= EVENTS_AT_MOST
            else "fluid"
        )

    @property
    def conditions(self) -> Conditions:
        """The scenario as figures and reports describe it."""
        app, load = self.app, self.measured.load
        return Conditions(
            app.name,
            app.summary,
            app.topology,
            load.name,
            load.total,
            load.peak,
            load.duration_s,
            self.window_s,
            app.target_latency_s,
            self.lead_s,
            load.started_at,
            self.load.duration_s - load.duration_s,
            self.share,
        )

    def needs(self) -> dict[str, Counts]:
        """Replicas that each window's load keeps busy, per operator: ``max(1, ceil(rate * visits *
        service time))``.
        """
        rates, visits = self.load.rates(self.window_s), self.app.visits()
        return {n: needs(rates * visits[n], self.app.service_s(n)) for n in self.app.topology.names}

    def future(self) -> LoadFuture:
        """The load as it comes, for clairvoyant planners and the bound of the promise."""
        rates, visits, app = self.load.rates(self.window_s), self.app.visits(), self.app
        work = {n: rates * visits[n] * app.service_s(n) for n in app.topology.names}
        service_s = sum(visits[n] * app.service_s(n) for n in app.topology.names)
        spare_s = max(0.0, app.target_latency_s - service_s)
        sent = {
            (p, c): app.share(p, c) * app.service_s(c) / app.service_s(p)
            for p, c in app.topology.edges
        }
        parts = int(max(1, min(PARTS_AT_MOST, self.window_s / self.load.interval_s + 1e-9)))
        within = self.load.rates(self.window_s / parts)[: parts * len(rates)].reshape(-1, parts)
        fine = {n: within * visits[n] * app.service_s(n) for n in app.topology.names}
        return LoadFuture(
            0.0,
            self.window_s,
            self.needs(),
            work,
            spare_s,
            self.share,
            sent,
            fine,
            counted_from=self.windows - self.measured.windows,
        )

    def target_cost(self) -> float | None:
        """The least cost that keeps the promise (``plan.clairvoyant_target.bound``); None where the
        load is too long to compute it while a user waits.
        """
        if self.warm_up_s:
            return self.measured.target_cost()
        if self.windows > BOUND_AT_MOST:
            return None
        most = {n: self.app.topology[n].max_replicas for n in self.app.topology.names}
        return bound(self.future(), self.prices, self.start(), most)

    def start(self) -> dict[str, int]:
        """Replicas before the first window."""
        return {
            n: min(int(v[0]), self.app.topology[n].max_replicas) for n, v in self.needs().items()
        }


NewEnvironment = Callable[[Scenario, System], SimulatedEnvironment]


def simulator(case: Scenario, system: System) -> SimulatedEnvironment:
    """The simulator's own environment for a case, with the system's grouping."""
    from foretide.sim.environment import Simulation

    return Simulation(
        case.app,
        case.load,
        mode=case.mode,
        window_s=case.window_s,
        seed=case.seed,
        grouping=system.grouping,
        replicas=case.start(),
        **case.changes,
    )


def simulate(
    case: Scenario,
    system: System,
    progress: Progress | None = None,
    new_environment: NewEnvironment = simulator,
) -> RunRecord:
    """One system through the whole load. A part that needs an extra which is not installed is an
    error before anything runs.
    """
    system.new_forecaster()
    per_window = system.cadence.steps_per_window(case.window_s)
    environment, windows, need = new_environment(case, system), case.windows, case.needs()
    warm_up = windows - case.measured.windows
    decisions: list[Decision] = []
    if system.keeps_promises:
        system = system.promised(case.app.target_latency_s, case.share)
    priced = system.priced(case.prices).foreseeing(case.future())
    loop = priced.autoscaler(
        case.app.topology, environment, environment, mode="act", record=decisions.append
    )
    for i in range(1, windows + 1):
        for j in range(1, per_window + 1):
            loop.step((i - 1 + j / per_window) * case.window_s)
        decisions[i - 1 :] = [merged(decisions[i - 1 :])]
        if i == warm_up:
            environment.forget_latencies()
        if progress and (i % max(1, windows // 200) == 0 or i == windows):
            progress(system.name, i, windows)
    measured = [d.snapshot is not None for d in decisions]
    latencies = environment.latencies_ms()
    record = RunRecord(
        system.name,
        case.app.topology,
        case.window_s,
        tuple(d.snapshot for d in decisions if d.snapshot is not None),
        tuple(decisions),
        {n: v[np.array(measured)] for n, v in need.items()},
        start=case.start(),
        target_latency_s=case.app.target_latency_s,
        share=case.share,
        prices=case.prices,
    )
    return replace(
        record.since(sum(measured[:warm_up])),
        latencies_ms=latencies[0] if latencies else None,
        latency_weights=latencies[1] if latencies else None,
    )


Attempt = Summary | str
"""A run, or the sentence that says why there is none."""


def compare(
    case: Scenario,
    systems: Sequence[System],
    progress: Progress | None = None,
    processes: int | None = None,
    new_environment: NewEnvironment = simulator,
) -> Comparison:
    """Every system on the case, on ``processes`` processes (default: one per core). A system that
    misses an extra, or that never could plan here, is left out with the reason.
    """
    workers = min(processes or os.cpu_count() or 1, len(systems))
    attempts: dict[str, Attempt]
    if workers <= 1:
        attempts = {s.name: _attempt(case, s, progress, new_environment) for s in systems}
    else:
        attempts = _side_by_side(case, systems, progress, workers, new_environment)
    least = case.target_cost()
    runs = tuple(_against(r, least) for s in systems if isinstance(r := attempts[s.name], Summary))
    left_out = {n: why for n, why in attempts.items() if isinstance(why, str)}
    return Comparison(case.conditions, runs, left_out, least)


def _against(run: Summary, least: float | None) -> Summary:
    """The run with its cost held against the least that keeps the promise."""
    if not least or run.figures.cost is None:
        return run
    ratio = run.figures.cost / least
    return replace(run, figures=replace(run.figures, target_cost_ratio=ratio))


def _attempt(
    case: Scenario, system: System, progress: Progress | None, new_environment: NewEnvironment
) -> Attempt:
    try:
        record = simulate(case, system, progress, new_environment)
    except MissingExtra as error:
        return str(error)
    if all(d.plan is None for d in record.decisions):
        return f"it never planned: {record.decisions[-1].error}"
    return summarize(record)


_link: list[Any] = []
"""In a worker: where progress goes, and the event that asks it to stop."""


def _begin(queue: Any, stop: Any) -> None:
    _link[:] = queue, stop
    # Unread progress must not keep a worker from ending. Ctrl-C reaches every process of a
    # terminal; the parent decides for all.
    queue.cancel_join_thread()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _worker(case: Scenario, system: System, new_environment: NewEnvironment) -> Attempt:
    queue, stop = _link

    def tell(name: str, done: int, total: int) -> None:
        queue.put((name, done, total))
        if stop.is_set():
            raise KeyboardInterrupt

    return _attempt(case, system, tell, new_environment)


def _side_by_side(
    case: Scenario,
    systems: Sequence[System],
    progress: Progress | None,
    workers: int,
    new_environment: NewEnvironment,
) -> dict[str, Attempt]:
    """New processes, not forks: a fork of a process with threads can hang, and compiled code is
    cached on disk anyway.
    """
    context = multiprocessing.get_context("spawn")
    queue, stop = context.Queue(), context.Event()
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(queue, stop)) as pool:
        pending: dict[Future[Attempt], str] = {
            pool.submit(_worker, case, s, new_environment): s.name for s in systems
        }
        left = set(pending)
        try:
            while left:
                _, left = wait(left, timeout=0.1, return_when=FIRST_COMPLETED)
                with suppress(Empty):
                    # Drained even without a listener, or reports would pile up in the workers.
                    while True:
                        news = queue.get_nowait()
                        if progress:
                            progress(*news)
            return {name: f.result() for f, name in pending.items()}
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
