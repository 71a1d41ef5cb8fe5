"""The loop: read, forecast, plan, guard, apply, journal.

Owns the failure rule: a failed stage leaves replicas as they are and is one journal line; only
``step`` catches. It knows no clock, no Spark and no simulator: time and the two ends of the loop
are passed in.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from foretide.clock import Clock, window_ends
from foretide.errors import InvalidConfig, InvalidRecord, NotReady
from foretide.forecast.retrain import Retraining
from foretide.guards import Guard, View, guarded
from foretide.history import History
from foretide.model import Array, Decision, Forecast, Mode, Outcome, Plan, Snapshot
from foretide.parts import Actuator, Forecaster, Planner, Probe
from foretide.plan.optimum import lead_windows
from foretide.topology import Topology

log = logging.getLogger(__name__)

LONGEST_S = 3600.0
"""The longest horizon that follows from a lead time and prices."""


@dataclass(frozen=True, slots=True)
class Cadence:
    """When and on what to plan: every ``plan_every_s`` seconds, ``horizon_s`` seconds ahead;
    forecasts are renewed every ``forecast_every_s`` seconds (None: with every plan). A system that
    wants shorter windows than the run's measures every ``observe_s`` seconds.

    Where a method counts windows and names no seconds, ``plan_every`` and ``horizon`` are windows,
    used while their seconds are None. What a model learns from is counted in windows: the last
    ``lookback`` are shown to it, and it learns anew every ``fit_every`` (None: never). ``scope``
    says which operators' loads are forecast. With ``after_lead_s`` the horizon follows the lead
    time that is measured: so many seconds beyond the moment when capacity asked for now works.
    With ``skip_lead`` the planner is given the forecast from that moment on (a published planner
    takes its first window for the next one); without it the forecast starts now, as published.
    """

    horizon: int = 1
    plan_every: int = 1
    lookback: int = 100
    fit_every: int | None = None
    scope: Literal["sources", "operators"] = "sources"
    horizon_s: float | None = None
    plan_every_s: float | None = None
    forecast_every_s: float | None = None
    observe_s: float | None = None
    after_lead_s: float | None = None
    skip_lead: bool = False

    def __post_init__(self) -> None:
        for name in ("horizon", "plan_every", "lookback", "fit_every"):
            if (windows := getattr(self, name)) is not None and windows < 1:
                raise InvalidConfig(f"{name} is {windows}: give 1 window or more")
        for name in ("horizon_s", "plan_every_s", "forecast_every_s", "observe_s", "after_lead_s"):
            if (seconds := getattr(self, name)) is not None and not seconds > 0:
                raise InvalidConfig(f"{name} is {seconds:g}: give more than 0 seconds")

    def fitted(self, window_s: float, lead_s: float | None = None) -> Beat:
        """The cadence in windows of ``window_s`` seconds, the nearest whole number of them.

        >>> Cadence(horizon_s=30.0, plan_every_s=30.0).fitted(10.0)
        Beat(horizon=3, plan_every=3, forecast_every=3)
        >>> Cadence(horizon=10).fitted(10.0)
        Beat(horizon=10, plan_every=1, forecast_every=1)
        """

        def windows(seconds: float | None, otherwise: int) -> int:
            return otherwise if seconds is None else max(1, round(seconds / window_s))

        plan_every = windows(self.plan_every_s, self.plan_every)
        horizon = windows(self.horizon_s, self.horizon)
        if self.after_lead_s is not None:
            reach_s = min((lead_s or 0.0) + self.after_lead_s, LONGEST_S)
            horizon = 1 + math.ceil(reach_s / window_s - 1e-9)
        return Beat(
            horizon,
            plan_every,
            max(plan_every, windows(self.forecast_every_s, plan_every)),
            lead_windows(lead_s, window_s) if self.skip_lead else 0,
        )

    def steps_per_window(self, window_s: float) -> int:
        """How many times a loop with windows of ``window_s`` seconds measures in each of them."""
        return 1 if self.observe_s is None else max(1, int(window_s / self.observe_s + 1e-9))


@dataclass(frozen=True, slots=True)
class Beat:
    """A cadence in windows of a certain length; ``skip`` windows pass before what is planned
    works.
    """

    horizon: int
    plan_every: int
    forecast_every: int
    skip: int = field(default=0, repr=False)

    def for_planner(self, forecasts: Mapping[str, Forecast]) -> dict[str, Forecast]:
        """The forecasts from the moment when what is planned now works."""
        return {n: f.after(self.skip) or f for n, f in forecasts.items()}


@dataclass
class Autoscaler:
    """One control loop over one topology. ``mode`` may be a switch: asked once per step, what it
    said holds for that step. ``train_beside`` trains slow forecasters in a worker thread, for live
    loops; without it a run is repeatable.
    """

    topology: Topology
    probe: Probe
    planner: Planner
    actuator: Actuator
    forecaster: Callable[[], Forecaster]
    guards: Sequence[Guard] = ()
    cadence: Cadence = field(default_factory=Cadence)
    mode: Mode | Callable[[], Mode] = "advise"
    record: Callable[[Decision], None] = lambda decision: None
    history_limit: int = 100_000
    train_beside: bool = False

    def __post_init__(self) -> None:
        self.retraining = Retraining(self.train_beside)
        self.history = History(self.topology, self.history_limit)
        self._forecasters: dict[str, Forecaster] = {}
        self._proposals: deque[Plan] = deque(maxlen=100)
        self._applied: Plan | None = None
        self._windows = self._fitted = 0
        self._pace: tuple[Clock, float] | None = None
        self._read_s = 0.0
        self._forecasts: dict[str, Forecast] = {}
        self._forecast_at = 0

    def step(self, now: float, gap: str | None = None) -> Decision:
        """One window: every stage's result goes into one Decision, and so does the failure that
        stopped it. ``gap`` says why the counts of this window make no rate: the probe is read, so
        that the next window starts here, and nothing is planned on it.
        """
        decision = Decision(at=now, outcome="observed", mode="advise")
        stage = "mode"
        self._windows += 1
        try:
            decision = replace(decision, mode=self.mode() if callable(self.mode) else self.mode)
            stage = "read"
            snapshot = self._read(now, gap)
            self.history.append(snapshot)
            decision = replace(decision, snapshot=snapshot)
            beat = self.cadence.fitted(snapshot.window_s, snapshot.lead_s)
            if self._windows % beat.plan_every == 0:
                stage = "forecast"
                decision = replace(decision, forecasts=self._ahead(beat))
                stage = "plan"
                ahead = beat.for_planner(decision.forecasts)
                proposed = self.planner.plan(self.topology, self.history, ahead)
                decision = replace(decision, proposed=proposed)
                stage = "guard"
                view = View(self.topology, self.history, now, tuple(self._proposals))
                self._proposals.append(proposed)
                decision = replace(decision, plan=guarded(proposed, view, self.guards))
                stage = "apply"
                decision = replace(decision, outcome=self._apply(decision))
        except NotReady as error:
            decision = replace(decision, outcome="waiting", error=f"{stage}: {error}")
        except Exception as error:
            decision = replace(
                decision, outcome="failed", error=f"{stage}: {type(error).__name__}: {error}"
            )
        if decision.snapshot is None:
            self.history.gap(now)
        try:
            self.record(decision)
        except Exception as error:
            log.error("the decision of %s could not be recorded: %s", now, error)
        return decision

    def _read(self, now: float, gap: str | None) -> Snapshot:
        if gap is not None:  # read all the same, so that the next window starts here
            with suppress(NotReady):
                self.probe.read(now)
            raise NotReady(gap)
        try:
            snapshot = self.probe.read(now)
        finally:
            hung = self._hung(now)
        if hung is not None:
            raise NotReady(hung)
        if not isinstance(snapshot, Snapshot):
            raise InvalidRecord(
                f"the probe returned {type(snapshot).__name__}: a probe returns a Snapshot, or "
                "raises NotReady while there is nothing to measure"
            )
        return snapshot.check(self.topology)

    def _hung(self, now: float) -> str | None:
        """Why a read that took longer than a window makes no rate of this window, nor of the next:
        it counted past the end of this one, into the next.
        """
        if self._pace is None:
            return None
        clock, window_s = self._pace
        before, self._read_s = self._read_s, clock.now() - now
        if max(before, self._read_s) <= window_s:
            return None
        return (
            f"a read took {max(before, self._read_s):,.0f} s of windows of {window_s:g} s: a gap, "
            "not a rate"
        )

    def _ahead(self, beat: Beat) -> dict[str, Forecast]:
        """Forecasts from now on: new ones when they are due, else what is left of the last ones."""
        age = self._windows - self._forecast_at
        if self._forecasts and age < beat.forecast_every:
            left = {n: f.after(age) for n, f in self._forecasts.items()}
            if all(f is not None for f in left.values()):
                return {n: f for n, f in left.items() if f is not None}
        longest = beat.horizon + beat.skip + beat.forecast_every - beat.plan_every
        self._forecasts = self._forecast(longest)
        self._forecast_at = self._windows
        return self._forecasts

    def _forecast(self, horizon: int) -> dict[str, Forecast]:
        names = self.topology.sources if self.cadence.scope == "sources" else self.topology.names
        for name in names:
            self.forecaster_of(name)
        self.retraining.settle()
        due = self._windows // self.cadence.fit_every if self.cadence.fit_every else 0
        if due > self._fitted:  # not every window has a forecast
            self._fitted = due
            self.retraining.fit(
                [self._forecasters[n] for n in names], [self._rates(n) for n in names]
            )
        return {
            n: self._forecasters[n].forecast(self._rates(n, self.cadence.lookback), horizon)
            for n in names
        }

    def forecaster_of(self, name: str) -> Forecaster:
        """The forecaster of an operator's load, made at its first use."""
        if name not in self._forecasters:
            self._forecasters[name] = self.forecaster()
        return self._forecasters[name]

    @property
    def forecasters(self) -> Mapping[str, Forecaster]:
        """The forecasters made so far, by operator."""
        return self._forecasters

    def _rates(self, name: str, last: int | None = None) -> Array:
        return (
            self.history.offered(name, last)
            if name in self.topology.sources
            else self.history.rates(name, last)
        )

    def _apply(self, decision: Decision) -> Outcome:
        plan, snapshot = decision.plan, decision.snapshot
        assert plan is not None
        assert snapshot is not None
        if self._holds(plan, snapshot):
            return "unchanged"
        if decision.mode == "advise":
            return "advised"
        self.actuator.apply(plan)
        self._applied = plan
        self.history.ask(plan.replicas)
        return "applied"

    def _holds(self, plan: Plan, snapshot: Snapshot) -> bool:
        """Whether the environment already is as planned, with nothing else on its way. Where no
        placement is planned, the hosts that were seen tell how many run.
        """
        running = {n: s.replicas for n, s in snapshot.samples.items()}
        if {**running, **plan.replicas} != running:
            return False
        if self._applied is not None and self._applied.replicas != plan.replicas:
            return False
        if plan.executors is not None and plan.placement is None and snapshot.hosts is not None:
            return plan.executors == len(snapshot.hosts)
        last = self._applied or Plan({})
        return (plan.executors, plan.placement, plan.release) == (
            last.executors,
            last.placement,
            last.release,
        )

    def run(
        self,
        clock: Clock,
        window_s: float,
        stop: threading.Event | None = None,
        steps: int | None = None,
    ) -> None:
        """Step at every window's end until ``stop`` is set, SIGINT or SIGTERM comes, or ``steps``
        are done.
        """
        stop = stop or threading.Event()
        ends, self._pace = window_ends(clock, window_s, stop), (clock, window_s)
        with stopping_on_signals(stop):
            try:
                while (steps is None or steps > 0) and (end := next(ends, None)):
                    self.step(end.at, end.gap)
                    steps = None if steps is None else steps - 1
            finally:
                self._pace = None
                self.retraining.close()


@contextmanager
def stopping_on_signals(stop: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM set ``stop``; handlers are put back afterwards. Outside the main thread
    signals are left alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.signal(s, lambda *_: stop.set()) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
