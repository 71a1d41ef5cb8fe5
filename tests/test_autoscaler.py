"""The loop's behaviour, told as stories on the scripted world."""

import inspect
import os
import random
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from foretide.autoscaler import Autoscaler, Beat, Cadence
from foretide.errors import ActuationError, InvalidConfig, NotReady
from foretide.forecast.basic import Basic
from foretide.guards import bounds, catch_up, patience
from foretide.history import History
from foretide.model import Array, Decision, Forecast, Host, Plan, Snapshot
from foretide.plan.reactive import Reactive
from foretide.testing import ManualClock, RecordingActuator, ScriptedEnvironment, ScriptedProbe
from foretide.topology import Operator, Topology

CHAIN = Topology(
    (Operator("parse", max_replicas=20), Operator("store", inputs=("parse",), max_replicas=20))
)
SERVICE = {"parse": 0.02, "store": 0.05}


def world(load: Callable[[float], float] = lambda at: 100.0) -> ScriptedEnvironment:
    return ScriptedEnvironment(CHAIN, SERVICE, load, window_s=10.0)


def loop(ends: ScriptedEnvironment, **changes: object) -> Autoscaler:
    parts: dict[str, object] = {
        "forecaster": Basic,
        "mode": "act",
        "guards": (bounds(),),
        **changes,
    }
    return Autoscaler(CHAIN, ends, Reactive(drain_s=30.0), ends, **parts)  # type: ignore[arg-type]


def test_load_rises_the_backlog_drains_and_replicas_fall() -> None:
    ends = world(lambda at: 20.0 if at < 100 or at > 300 else 120.0)
    scaler = loop(ends, guards=(catch_up(5.0), patience(3), bounds()))
    seen = [scaler.step(10.0 * i) for i in range(1, 61)]
    peak = max(d.snapshot.samples["store"].replicas for d in seen if d.snapshot)
    assert peak >= 6, "120/s at 50 ms keep six replicas busy"
    assert ends.backlog == {"parse": pytest.approx(0.0), "store": pytest.approx(0.0)}
    assert ends.replicas == {"parse": 1, "store": 1}
    assert all(d.plan and d.plan.reasons["store"] for d in seen)
    assert {d.outcome for d in seen} == {"applied", "unchanged"}


def test_advise_never_applies() -> None:
    ends = world()
    scaler = loop(ends, mode="advise")
    outcomes = {scaler.step(10.0 * i).outcome for i in range(1, 20)}
    assert outcomes == {"advised"}
    assert ends.replicas == {"parse": 1, "store": 1}
    scaler.mode = "act"
    assert scaler.step(200.0).outcome == "applied"
    assert ends.replicas["store"] > 1


def test_500_steps_with_every_kind_of_failure_change_nothing_and_never_stop_the_loop() -> None:
    """Failed reads, a forecaster that raises, an actuator that refuses: one journal line each,
    replicas as they were.
    """
    rng = random.Random(7)
    steps = list(range(1, 501))
    bad_reads = set(rng.sample(steps, 50))
    bad_forecasts = set(rng.sample(steps, 40))
    bad_applies = set(rng.sample(steps, 40))
    ends = world(lambda at: 60.0 + 50.0 * ((at // 70) % 2) + rng.random())
    now = 0

    class FailingProbe:
        def read(self, at: float) -> Snapshot:
            if now in bad_reads:
                raise ConnectionError("no answer")
            return ends.read(at)

    class FailingForecaster(Basic):
        def forecast(self, recent: Array, horizon: int) -> Forecast:
            if now in bad_forecasts:
                raise ZeroDivisionError("a bug in a model")
            return super().forecast(recent, horizon)

    class RefusingActuator:
        def apply(self, plan: Plan) -> None:
            if now in bad_applies:
                raise ActuationError("the cluster says no")
            ends.apply(plan)

    lines: list[Decision] = []
    scaler = Autoscaler(
        CHAIN,
        FailingProbe(),
        Reactive(),
        RefusingActuator(),
        FailingForecaster,
        (bounds(),),
        mode="act",
        record=lines.append,
    )
    failed: list[int] = []
    applied = 0
    for now in steps:
        before = dict(ends.replicas)
        decision = scaler.step(10.0 * now)
        if decision.outcome == "failed":
            failed.append(now)
            assert ends.replicas == before
        applied += decision.outcome == "applied"
    assert len(lines) == 500
    assert [line.at for line in lines] == [10.0 * n for n in steps], "one line per step, in order"
    assert set(failed) >= bad_reads | bad_forecasts
    assert set(failed) <= bad_reads | bad_forecasts | bad_applies
    kinds = {line.error.split(":")[0] for line in lines if line.error}
    assert kinds == {"read", "forecast", "apply"}
    assert applied > 100, "between the failures the loop goes on scaling"
    assert int(sum(v != v for v in scaler.history.rates("parse"))) == 50, (
        "each failed read is a hole, not a zero"
    )


def test_not_ready_is_waiting_not_failing() -> None:
    scaler = Autoscaler(
        CHAIN,
        ScriptedProbe([NotReady("warming up")]),
        Reactive(),
        RecordingActuator(),
        Basic,
        mode="act",
    )
    decision = scaler.step(1.0)
    assert decision.outcome == "waiting"
    assert decision.error == "read: warming up"


def test_a_snapshot_of_another_topology_is_a_failed_read() -> None:
    ends = world()
    wrong = Snapshot(1.0, 1.0, {})
    scaler = Autoscaler(CHAIN, ScriptedProbe([wrong]), Reactive(), ends, Basic, mode="act")
    assert scaler.step(1.0).error is not None
    assert len(scaler.history) == 1


def test_a_journal_that_cannot_be_written_does_not_stop_the_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full_disk(decision: Decision) -> None:
        raise OSError("no space left")

    ends = world()
    assert loop(ends, record=full_disk).step(10.0).outcome == "applied"
    assert "no space left" in caplog.text


def test_plans_only_every_nth_window_and_fits_when_due() -> None:
    fits: list[int] = []

    class Counting(Basic):
        def fit(self, series: Array) -> None:
            fits.append(len(series))

    scaler = loop(
        world(),
        forecaster=Counting,
        cadence=Cadence(horizon=3, plan_every=3, fit_every=6, scope="operators"),
    )
    outcomes = [scaler.step(10.0 * i) for i in range(1, 13)]
    assert [d.outcome == "observed" for d in outcomes] == [True, True, False] * 4
    assert fits == [6, 6, 12, 12], "each operator's forecaster learns at windows 6 and 12"
    assert set(outcomes[-1].forecasts) == {"parse", "store"}
    assert outcomes[-1].forecasts["parse"].horizon == 3


def test_a_model_that_forecasts_seldom_is_fitted_all_the_same() -> None:
    fits: list[int] = []

    class Counting(Basic):
        def fit(self, series: Array) -> None:
            fits.append(len(series))

    cadence = Cadence(fit_every=5, forecast_every_s=40.0)
    scaler = loop(world(), forecaster=Counting, cadence=cadence)
    for i in range(1, 15):
        scaler.step(10.0 * i)
    assert fits == [5, 13], "with the first forecast after windows 5 and 10"


def test_executors_are_asked_for_until_they_are_seen() -> None:
    """The cluster gives one executor a window; asking goes on until the probe sees what was
    planned.
    """
    ends, actuator = world(), RecordingActuator()
    seen = 1

    class Hosted:
        def read(self, at: float) -> Snapshot:
            return replace(ends.read(at), hosts=tuple(Host(f"e{i}", 0.5) for i in range(seen)))

    class WantsThree:
        def plan(
            self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]
        ) -> Plan:
            return Plan({n: history.replicas(n) for n in topology.names}, {}, executors=3)

    scaler = Autoscaler(CHAIN, Hosted(), WantsThree(), actuator, Basic, mode="act")
    outcomes = []
    for window in range(1, 5):
        seen = min(window, 3)
        outcomes.append(scaler.step(10.0 * window).outcome)
    assert outcomes == ["applied", "applied", "unchanged", "unchanged"]
    assert [p.executors for p in actuator.plans] == [3, 3]


def test_run_follows_the_clock_and_stops_after_the_given_steps() -> None:
    ends, clock = world(), ManualClock(1000.0)
    lines: list[Decision] = []
    loop(ends, record=lines.append).run(clock, window_s=10.0, steps=5)
    assert [d.at for d in lines] == [1010.0, 1020.0, 1030.0, 1040.0, 1050.0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_stops_cleanly_on_a_signal(number: signal.Signals) -> None:
    ends, clock = world(), ManualClock()
    lines: list[Decision] = []

    def record(decision: Decision) -> None:
        lines.append(decision)
        if len(lines) == 3:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    loop(ends, record=record).run(clock, window_s=10.0)
    assert len(lines) == 3
    assert signal.getsignal(number) == before


def test_run_stops_from_another_thread() -> None:
    stop = threading.Event()
    stop.set()
    lines: list[Decision] = []
    loop(world(), record=lines.append).run(ManualClock(), 10.0, stop)
    assert lines == []


def test_one_step_fits_a_screen() -> None:
    assert len(inspect.getsource(Autoscaler.step).splitlines()) <= 45


def test_a_cadence_in_seconds_fits_any_window() -> None:
    published = Cadence(horizon_s=30.0, plan_every_s=30.0, observe_s=1.0)
    assert published.fitted(1.0) == Beat(30, 30, 30)
    assert published.fitted(10.0) == Beat(3, 3, 3)
    assert published.fitted(9.7) == published.fitted(10.2) == Beat(3, 3, 3)
    assert published.fitted(120.0) == Beat(1, 1, 1)
    assert (published.steps_per_window(10.0), published.steps_per_window(0.5)) == (10, 1)
    with pytest.raises(InvalidConfig, match="plan_every_s is 0: give more than 0 seconds"):
        Cadence(plan_every_s=0.0)


def test_the_first_plan_comes_within_the_cadence_whatever_the_window() -> None:
    for window_s in (1.0, 5.0, 10.0, 30.0):
        ends = ScriptedEnvironment(CHAIN, {"parse": 0.02, "store": 0.05}, lambda at: 50.0, window_s)
        scaler = loop(ends, cadence=Cadence(plan_every_s=30.0))
        steps = [scaler.step(window_s * i) for i in range(1, 121)]
        planned = [d.at for d in steps if d.outcome != "observed"]
        assert planned[0] == 30.0
        assert np.diff(planned).tolist() == [30.0] * (len(planned) - 1)


def test_forecasts_are_renewed_on_the_slow_beat_and_used_up_between() -> None:
    class Counting(Basic):
        asked = 0

        def forecast(self, recent: Array, horizon: int) -> Forecast:
            Counting.asked += 1
            return Forecast(tuple(float(i) for i in range(horizon)))

    scaler = loop(
        world(), forecaster=Counting, cadence=Cadence(horizon_s=20.0, forecast_every_s=30.0)
    )
    seen = [scaler.step(10.0 * i).forecasts["parse"].mean for i in range(1, 7)]
    assert seen == [(0, 1, 2, 3), (1, 2, 3), (2, 3)] * 2
    assert Counting.asked == 2


def test_what_is_still_on_its_way_is_called_off() -> None:
    """Replicas that were asked for and have not come must not come after the plan changed."""
    ends, actuator = world(), RecordingActuator()
    wishes = iter([5, 1])

    class Wishing:
        def plan(self, topology: Topology, history: History, forecasts: object) -> Plan:
            return Plan(dict.fromkeys(topology.names, next(wishes)))

    scaler = Autoscaler(CHAIN, ends, Wishing(), actuator, Basic, mode="act")
    assert [scaler.step(10.0 * i).outcome for i in (1, 2)] == ["applied", "applied"]
    assert [p.replicas["parse"] for p in actuator.plans] == [5, 1]
    assert scaler.history.asked("parse") == 1
