"""Slow learners train together, beside the loop, and the old model serves until the new one is
ready.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from foretide.autoscaler import Autoscaler, Cadence
from foretide.errors import NotReady
from foretide.forecast.basic import Basic
from foretide.forecast.conformal import Conformal
from foretide.forecast.retrain import Retraining, SlowLearner, core
from foretide.forecast.stand_in import WithStandIn
from foretide.model import Array, Forecast
from foretide.parts import Forecaster
from foretide.plan.reactive import Reactive
from foretide.testing import ScriptedEnvironment
from foretide.topology import Operator, Topology

CHAIN = Topology(
    (Operator("parse", max_replicas=20), Operator("store", inputs=("parse",), max_replicas=20))
)


class Level:
    """Forecasts the mean of what it learned; its training waits until the test lets it go on."""

    calls: list[int]
    gate: threading.Event
    broken: bool

    def __init__(self) -> None:
        self.level: float | None = None

    def fit(self, series: Array) -> None:
        self.take(self.train_many([self], [series], lambda: False)[0])

    @staticmethod
    def train_many(
        forecasters: Sequence[Level], series: Sequence[Array], stopped: Callable[[], bool]
    ) -> list[float]:
        Level.calls.append(len(forecasters))
        while not Level.gate.wait(0.01) and not stopped():
            pass
        if Level.broken:
            raise ValueError("no memory left")
        return [float(s.mean()) for s in series]

    def take(self, trained: float) -> None:
        self.level = trained

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        if self.level is None:
            raise NotReady("not trained yet")
        return Forecast.of(np.full(horizon, self.level))


@pytest.fixture(autouse=True)
def fresh() -> None:
    Level.calls, Level.gate, Level.broken = [], threading.Event(), False


def loop(beside: bool, forecaster: Callable[[], Forecaster] = Level) -> Autoscaler:
    environment = ScriptedEnvironment(
        CHAIN, {"parse": 0.02, "store": 0.05}, lambda at: at, window_s=10.0
    )
    cadence = Cadence(fit_every=5, scope="operators")
    return Autoscaler(
        CHAIN,
        environment,
        Reactive(),
        environment,
        forecaster,
        cadence=cadence,
        train_beside=beside,
    )


def test_all_operators_train_in_one_call() -> None:
    Level.gate.set()
    scaler = loop(beside=False)
    seen = [scaler.step(10.0 * i) for i in range(1, 11)]
    assert Level.calls == [2, 2]
    assert [d.outcome for d in seen[:4]] == ["waiting"] * 4
    assert seen[4].forecasts["parse"].mean == (30.0,), "the mean of 10, 20, 30, 40, 50"
    assert seen[9].forecasts["parse"].mean == (55.0,)


def test_the_loop_does_not_wait_and_the_old_model_serves_until_the_new_one_is_ready() -> None:
    Level.gate.set()
    scaler = loop(beside=True)
    for i in range(1, 6):
        scaler.step(10.0 * i)
    scaler.retraining.settle(wait=True)
    assert scaler.step(60.0).forecasts["parse"].mean == (30.0,)
    Level.gate.clear()
    during = [scaler.step(10.0 * i).forecasts["parse"].mean for i in range(7, 17)]
    assert during == [(30.0,)] * 10, "training is under way all the while"
    assert Level.calls == [2, 2], "and no second one is begun beside it"
    Level.gate.set()
    scaler.retraining.settle(wait=True)
    assert scaler.step(170.0).forecasts["parse"].mean == (55.0,)


def test_a_failed_training_is_a_warning_and_the_old_model_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    level, retraining = Level(), Retraining(beside=True)
    level.take(7.0)
    Level.broken = True
    Level.gate.set()
    with caplog.at_level(logging.WARNING):
        retraining.fit([level], [np.ones(3)])
        retraining.settle(wait=True)
    assert "training failed, the old models go on: ValueError: no memory left" in caplog.text
    assert level.level == 7.0
    assert not retraining.busy
    Level.broken = False
    retraining.fit([level], [np.ones(3)])
    retraining.settle(wait=True)
    assert level.level == 1.0


def test_closing_ends_a_training_and_drops_it() -> None:
    level, retraining = Level(), Retraining(beside=True)
    retraining.fit([level], [np.ones(3)])
    assert retraining.busy
    retraining.close()
    assert not retraining.busy
    assert level.level is None


def test_wrappers_are_looked_through_and_quick_learners_fit_as_ever() -> None:
    Level.gate.set()
    inside, basic = Level(), Basic()
    Retraining().fit([Conformal(WithStandIn(inside)), basic], [np.full(4, 3.0), np.ones(4)])
    assert inside.level == 3.0
    assert core(Conformal(basic)) is basic
    assert not isinstance(basic, SlowLearner)


def test_a_stand_in_acts_until_the_first_training() -> None:
    Level.gate.set()
    scaler = loop(beside=False, forecaster=lambda: WithStandIn(Level()))
    seen = [scaler.step(10.0 * i) for i in range(1, 6)]
    assert [d.forecasts["parse"].mean[0] for d in seen] == [10.0, 20.0, 30.0, 40.0, 30.0]
