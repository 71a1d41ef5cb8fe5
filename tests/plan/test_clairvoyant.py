import numpy as np
import pytest

from foretide.errors import NotReady
from foretide.model import Prices
from foretide.plan.clairvoyant import Clairvoyant, StaticMean, StaticPeak
from foretide.plan.future import Future
from foretide.plan.optimum import optimal_schedule, schedule_cost
from foretide.systems import system
from foretide.testing import ScriptedEnvironment
from foretide.topology import Operator, Topology

CHAIN = Topology((Operator("a"), Operator("b", ("a",))))
SERVICE = {"a": 0.02, "b": 0.05}
LOADS = [100, 300, 120, 310, 90, 90, 90, 90, 280, 100]


def run(planner):
    windows = len(LOADS)
    environment = ScriptedEnvironment(
        CHAIN, SERVICE, lambda at: LOADS[min(len(LOADS), max(1, round(at / 10))) - 1]
    )
    future = Future(
        0.0,
        10.0,
        {
            n: np.array([environment.needed(n, 10.0 * (i + 1)) for i in range(windows)])
            for n in CHAIN.names
        },
    )
    loop = system(planner).foreseeing(future).autoscaler(CHAIN, environment, environment)
    used: dict[str, list[int]] = {n: [] for n in CHAIN.names}
    for i in range(1, windows + 1):
        for n in CHAIN.names:
            used[n].append(environment.replicas[n])
        loop.step(10.0 * i)
    return used, future


def test_the_clairvoyant_pays_the_optimum():
    used, future = run("clairvoyant")
    for name, schedule in used.items():
        prices = Prices().per_window(10.0)
        best = optimal_schedule(future.need[name][1:], prices, start=1)
        assert schedule_cost(schedule[1:], prices, 1) == pytest.approx(
            schedule_cost(best, prices, 1)
        )
        assert all(n >= need for n, need in zip(schedule[1:], future.need[name][1:], strict=True))


def test_static_peak_and_mean_never_change_after_the_first_window():
    peak, future = run("static-peak")
    mean, _ = run("static-mean")
    for name in CHAIN.names:
        assert set(peak[name][1:]) == {future.need[name].max()}
        assert set(mean[name][1:]) == {int(np.ceil(future.need[name].mean()))}


def test_without_a_future_the_clairvoyant_waits_and_the_static_sizes_use_the_past():
    environment = ScriptedEnvironment(CHAIN, SERVICE, lambda at: 100.0)
    blind = system("clairvoyant").autoscaler(CHAIN, environment, environment)
    assert blind.step(10.0).outcome == "waiting"
    with pytest.raises(NotReady, match="simulator"):
        Clairvoyant().plan(CHAIN, blind.history, {})
    assert StaticPeak().plan(CHAIN, blind.history, {}).replicas["a"] == 2
    assert StaticMean().plan(CHAIN, blind.history, {}).replicas["a"] == 2


def test_the_future_ends_with_its_last_window():
    future = Future(100.0, 10.0, {"a": np.array([1, 2, 3])})
    assert [future.window(t) for t in (50.0, 100.0, 110.0, 500.0)] == [0, 0, 1, 2]


def test_other_systems_are_not_told():
    srea = system("srea")
    assert srea.foreseeing(Future(0.0, 1.0, {})) is srea
