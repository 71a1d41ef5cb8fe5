"""FUGU's thresholds, local and global."""

from __future__ import annotations

from itertools import pairwise

import pytest
from host_cluster import Cluster, queries

from foretide.errors import InvalidConfig
from foretide.plan.hosts.thresholds import Thresholds, ThresholdSettings

T = queries(4)
WHERE = {"feed": "h1", "q0": "h1", "q1": "h1", "q2": "h2", "q3": "h2"}


def test_local_waits_for_three_windows_then_sheds_to_the_target_and_rests() -> None:
    cluster = Cluster(T, {"feed": 0.1, "q0": 0.5, "q1": 0.3, "q2": 0.2, "q3": 0.1}, WHERE)
    planner = Thresholds()
    for _ in range(2):
        cluster.apply(planner.plan(T, cluster.window(), {}))
        assert cluster.utilization()["h1"] == pytest.approx(0.9)
    plan = planner.plan(T, cluster.window(), {})
    cluster.apply(plan)
    assert plan.reasons["q1"] == "moves from h1 to h2: h1 is at 0.90, above 0.80 for 3 windows"
    assert cluster.utilization() == pytest.approx({"h1": 0.6, "h2": 0.6})
    cluster.loads |= {"q0": 0.8, "q2": 0.6}
    for _ in range(5):  # 25 s of the 30 s of grace
        assert planner.plan(T, cluster.window(), {}).executors == 2
    rested = planner.plan(T, cluster.window(), {})
    # h1 is at 0.9 and sheds q0, h2 is at 1.0 and sheds q1 and q3: 0.8 and 0.4 need a host each
    assert rested.executors == 4
    assert rested.placement is not None
    moved = {n: rested.placement[n] for n in ("q0", "q1", "q3")}
    assert moved["q1"] == moved["q3"] != moved["q0"]
    assert not {("h1",), ("h2",)} & set(moved.values())


def test_local_gives_back_an_idle_host_or_cancels() -> None:
    cluster = Cluster(T, {"feed": 0.1, "q0": 0.2, "q1": 0.1, "q2": 0.1, "q3": 0.05}, WHERE)
    planner = Thresholds()
    for _ in range(3):
        plan = planner.plan(T, cluster.window(), {})
        cluster.apply(plan)
    assert plan.release == ("h2",)
    assert list(cluster.utilization()) == ["h1"]
    tight = Cluster(T, {"feed": 0.1, "q0": 0.3, "q1": 0.15, "q2": 0.2, "q3": 0.05}, WHERE)
    planner = Thresholds()
    for _ in range(4):
        plan = planner.plan(T, tight.window(), {})
        tight.apply(plan)
    assert plan.release == ()
    assert plan.placement == {o: (h,) for o, h in WHERE.items()}


def test_global_does_not_see_one_overloaded_host_among_idle_ones() -> None:
    cluster = Cluster(T, {"feed": 0.1, "q0": 0.5, "q1": 0.35, "q2": 0.2, "q3": 0.1}, WHERE)
    planner = Thresholds(ThresholdSettings(scope="global"))
    for _ in range(5):
        plan = planner.plan(T, cluster.window(), {})
        cluster.apply(plan)
    assert plan.reasons[""] == "2 hosts at 0.62 on average: nothing to do"
    assert cluster.utilization()["h1"] == pytest.approx(0.95)


def test_global_scales_on_the_mean() -> None:
    cluster = Cluster(T, {"feed": 0.1, "q0": 0.4, "q1": 0.4, "q2": 0.5, "q3": 0.4}, WHERE)
    planner = Thresholds(ThresholdSettings(scope="global"))
    for _ in range(3):
        cluster.apply(planner.plan(T, cluster.window(), {}))
    assert max(cluster.utilization().values()) <= 0.6 + 1e-9
    assert len(cluster.names) == 4  # 0.4 + 0.4 of what both shed exceeds one host's target
    cluster.loads = dict.fromkeys(cluster.loads, 0.05)
    for _ in range(40):
        cluster.apply(planner.plan(T, cluster.window(), {}))
    assert len(cluster.names) == 1


def test_nothing_moves_under_a_constant_load_and_the_state_comes_back() -> None:
    cluster = Cluster(T, {"feed": 0.1, "q0": 0.5, "q1": 0.3, "q2": 0.2, "q3": 0.1}, WHERE)
    planner = Thresholds()
    places = []
    for _ in range(40):
        plan = planner.plan(T, cluster.window(), {})
        cluster.apply(plan)
        places.append(plan.placement)
        other = Thresholds()
        other.restore(planner.state())
        planner = other
    assert sum(a != b for a, b in pairwise(places)) == 1


def test_unknown_scope() -> None:
    with pytest.raises(InvalidConfig, match="'local'"):
        Thresholds(ThresholdSettings(scope="regional"))  # type: ignore[arg-type]
