"""The rate table finds the fewest replicas that keep up, and remembers them."""

from __future__ import annotations

import json

from foretide.history import History
from foretide.model import Sample, Snapshot
from foretide.plan.rlearning import RateLearning
from foretide.testing import ScriptedEnvironment
from foretide.topology import Operator, Topology

T = Topology((Operator("a", max_replicas=40),))


def run(planner: RateLearning, rate: float, windows: int) -> int:
    environment = ScriptedEnvironment(T, {"a": 0.1}, lambda at: rate)
    history = History(T)
    for i in range(windows):
        history.append(environment.read(10.0 * i))
        environment.apply(planner.plan(T, history, {}))
    return environment.replicas["a"]


def test_finds_the_fewest_replicas_that_keep_up() -> None:
    planner = RateLearning()
    assert run(planner, 50.0, windows=60) == 6  # 5 busy replicas, at most 0.9 each


def test_a_trained_table_answers_at_once_after_a_restart() -> None:
    planner = RateLearning()
    run(planner, 50.0, windows=60)
    trained = RateLearning()
    trained.restore(json.loads(json.dumps(planner.state())))
    assert trained.state() == planner.state()
    assert run(trained, 50.0, windows=1) == 6


def test_a_window_of_standstill_teaches_nothing() -> None:
    planner = RateLearning()
    history = History(T)
    history.append(Snapshot(10.0, 10.0, {"a": Sample(500, 0, 500, 6, busy_s=0.0)}))
    assert planner.plan(T, history, {}).replicas == {"a": 6}
    assert planner.state() == {"tables": {"a": {}}}


def test_waiting_events_play_no_part() -> None:
    planner = RateLearning()
    run(planner, 50.0, windows=60)
    history = History(T)
    history.append(Snapshot(10.0, 10.0, {"a": Sample(500, 600, 9000, 6, busy_s=60.0)}))
    assert planner.plan(T, history, {}).replicas == {"a": 6}
    history = History(T)
    history.append(Snapshot(10.0, 10.0, {"a": Sample(0, 600, 9000, 6, busy_s=60.0)}))
    assert planner.plan(T, history, {}).replicas == {"a": 1}
