"""FUGU's reinforcement learning as a planner."""

from __future__ import annotations

import json

import pytest
from host_cluster import Cluster, queries

from foretide.plan.hosts.rewards import RewardTable
from foretide.plan.hosts.sarsa import Sarsa, SarsaSettings

T = queries(4)
WHERE = {"feed": "h1", "q0": "h1", "q1": "h1", "q2": "h2", "q3": "h2"}


def test_acts_at_once_and_learns_after_the_grace_period() -> None:
    cluster = Cluster(T, {"feed": 0.1, "q0": 0.5, "q1": 0.3, "q2": 0.2, "q3": 0.1}, WHERE)
    planner = Sarsa()
    plan = planner.plan(T, cluster.window(), {})
    cluster.apply(plan)
    assert cluster.utilization() == pytest.approx({"h1": 0.6, "h2": 0.6})
    assert plan.reasons["q1"].startswith(
        "moves from h1 to h2: h1 is at 0.90, scale out promises most"
    )
    row = RewardTable().row(0.9)
    before = planner.tables["h1"].values[row, 2]
    for _ in range(5):
        planner.plan(T, cluster.window(), {})
        assert planner.tables["h1"].values[row, 2] == before
    planner.plan(T, cluster.window(), {})
    q_next = RewardTable().values[12, 2]
    assert planner.tables["h1"].values[row, 2] == pytest.approx(
        0.8 * before + 0.2 * (1 + 0.5 - 0.0 + 0.1 * q_next)
    )
    assert (
        planner.tables["h2"].visits.sum() == 0
    )  # h2 took operators meanwhile: nothing to learn from


def test_no_action_is_learned_in_the_next_window() -> None:
    cluster = Cluster(T, {"feed": 0.1, "q0": 0.3, "q1": 0.2, "q2": 0.4, "q3": 0.1}, WHERE)
    planner = Sarsa()
    planner.plan(T, cluster.window(), {})
    cluster.loads["q2"] = 0.2
    planner.plan(T, cluster.window(), {})
    none = RewardTable().values[:, 1]
    learned = planner.tables["h2"].values[10, 1]
    assert learned == pytest.approx(0.8 * none[10] + 0.2 * (1 + (1 / 6 - 1 / 2) + 0.1 * none[6]))


def test_a_release_that_finds_no_room_is_punished_and_not_tried_again() -> None:
    cluster = Cluster(T, {"feed": 0.1, "q0": 0.3, "q1": 0.15, "q2": 0.2, "q3": 0.05}, WHERE)
    planner = Sarsa()
    plan = planner.plan(T, cluster.window(), {})
    assert plan.release == ()
    assert plan.reasons[""] == "scale in of h2 at 0.25 found no room"
    plan = planner.plan(T, cluster.window(), {})
    assert planner.tables["h2"].best(0.25) == "none"
    assert "found no room" not in plan.reasons[""]


def test_a_host_that_finds_no_room_for_its_overload_is_not_punished() -> None:
    cluster = Cluster(T, {"feed": 0.1, "q0": 0.5, "q1": 0.4, "q2": 0.5, "q3": 0.25}, WHERE)
    planner = Sarsa(SarsaSettings(max_hosts=2))
    for _ in range(5):
        plan = planner.plan(T, cluster.window(), {})
        assert "scale out of h1 at 1.00 found no room" in plan.reasons[""]
    assert planner.tables["h1"].values.tolist() == RewardTable().values.tolist()


def test_a_released_host_is_forgotten() -> None:
    cluster = Cluster(T, {"feed": 0.1, "q0": 0.2, "q1": 0.1, "q2": 0.1, "q3": 0.05}, WHERE)
    planner = Sarsa()
    plan = planner.plan(T, cluster.window(), {})
    assert plan.release == ("h2",)
    cluster.apply(plan)
    planner.plan(T, cluster.window(), {})
    assert list(planner.tables) == ["h1"]


def test_a_restored_planner_decides_as_the_saved_one() -> None:
    cluster = Cluster(T, {"feed": 0.1, "q0": 0.5, "q1": 0.3, "q2": 0.2, "q3": 0.1}, WHERE)
    planner = Sarsa()
    for i in range(30):
        cluster.loads["q0"] = 0.2 + 0.1 * (i % 5)
        history = cluster.window()
        twin = Sarsa()
        twin.restore(json.loads(json.dumps(planner.state())))
        plan = planner.plan(T, history, {})
        assert twin.plan(T, history, {}) == plan
        assert twin.state() == planner.state()
        cluster.apply(plan)
