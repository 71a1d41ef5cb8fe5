import numpy as np
import pytest

from foretide.errors import InvalidConfig
from foretide.history import History
from foretide.model import Forecast, Sample, Snapshot, WindowPrices
from foretide.plan.baselines import Backlog, Ds2, LazyProvisioning, SparkDra
from foretide.plan.optimum import needs, optimal_schedule, schedule_cost
from foretide.systems import system
from foretide.testing import ScriptedEnvironment
from foretide.topology import Operator, Topology

ONE = Topology((Operator("a"),))
CHAIN = Topology((Operator("a"), Operator("b", ("a",))))
ET = 0.01


def history(*windows, topology=ONE):
    """Windows of 10 s: (rate, backlog, replicas)."""
    h = History(topology)
    for i, (rate, backlog, replicas) in enumerate(windows, start=1):
        h.append(
            Snapshot(
                10.0 * i,
                10.0,
                {"a": Sample(rate * 10, rate * 10, backlog, replicas, busy_s=rate * 10 * ET)},
            )
        )
    return h


def test_ds2_divides_the_target_rate_by_the_true_rate_of_a_replica():
    h = History(CHAIN)
    a = Sample(
        1000, 500, 500, 1, {"b": 1000.0}, busy_s=10.0, offered=1000
    )  # saturated: 50/s, but 100/s are offered
    b = Sample(1000, 1000, 0, 1, {}, busy_s=5.0)
    h.append(Snapshot(10.0, 10.0, {"a": a, "b": b}))
    plan = Ds2(utilization=1.0).plan(CHAIN, h, {})
    assert plan.replicas == {"a": 2, "b": 1}  # b gets 200/s at 5 ms each
    assert Ds2().plan(CHAIN, h, {}).replicas == {"a": 3, "b": 2}


def test_spark_adds_1_2_4_while_work_waits():
    rule = SparkDra()
    assert rule.plan(ONE, history((900, 50_000, 1)), {}).replicas["a"] == 2
    assert rule.plan(ONE, history((900, 50_000, 1), (900, 50_000, 2)), {}).replicas["a"] == 4
    assert (
        rule.plan(ONE, history((900, 50_000, 1), (900, 50_000, 2), (900, 50_000, 4)), {}).replicas[
            "a"
        ]
        == 8
    )


def test_spark_asks_for_no_more_than_the_work_can_use():
    assert SparkDra().plan(ONE, history((100, 4000, 2), (100, 4000, 4)), {}).replicas["a"] == 5


def test_spark_frees_what_was_idle_for_the_whole_timeout():
    busy, idle = (400, 0, 6), (150, 0, 6)
    assert SparkDra().plan(ONE, history(*[busy] + [idle] * 5), {}).replicas["a"] == 4
    assert SparkDra().plan(ONE, history(*[busy] + [idle] * 6), {}).replicas["a"] == 2
    assert SparkDra().plan(ONE, history(idle), {}).replicas["a"] == 6


def test_backlog_rule():
    assert (
        Backlog(threshold=1000, keep_up=False).plan(ONE, history((900, 4500, 9)), {}).replicas["a"]
        == 5
    )
    assert Backlog(threshold=1000).plan(ONE, history((900, 4500, 9)), {}).replicas["a"] == 9
    assert (
        Backlog(threshold=1000, keep_up=False).plan(ONE, history((900, 0, 9)), {}).replicas["a"]
        == 1
    )


@pytest.mark.parametrize(("keep_up", "least", "most"), [(True, 0, 3), (False, 10, 200)])
def test_the_bare_backlog_rule_never_rests(keep_up, least, most):
    environment = ScriptedEnvironment(ONE, {"a": 0.033}, lambda at: 100.0)
    loop = system("backlog", planner_constants={"threshold": 500, "keep_up": keep_up}).autoscaler(
        ONE, environment, environment
    )
    changes = [loop.step(10.0 * i).outcome for i in range(1, 300)].count("applied")
    assert least <= changes <= most


def test_lazy_holds_idle_replicas_until_they_cost_a_restart():
    ahead = {"a": Forecast((100.0,))}
    rule = LazyProvisioning(WindowPrices(1.0, up=1.0, down=1.0).per_second(10.0))
    assert rule.plan(ONE, history((400, 0, 4)), ahead).replicas["a"] == 4
    assert rule.plan(ONE, history((400, 0, 4), (100, 0, 4)), ahead).replicas["a"] == 4
    assert rule.plan(ONE, history((400, 0, 4), (100, 0, 4), (100, 0, 4)), ahead).replicas["a"] == 1
    assert rule.plan(ONE, history((100, 0, 1)), {"a": Forecast((700.0,))}).replicas["a"] == 7


def test_lazy_is_within_three_times_the_optimum_when_the_next_need_is_known():
    prices = WindowPrices(1.0, up=3.0, down=3.0, route=0.0)
    rule = LazyProvisioning(prices.per_second(10.0))
    rng = np.random.default_rng(5)
    for _ in range(20):
        rates = rng.uniform(0, 1500, 60)
        h, used, running = History(ONE), [], 1
        for i, rate in enumerate(rates):
            if i:
                running = rule.plan(ONE, h, {"a": Forecast((rate,))}).replicas["a"]
            used.append(running)
            h.append(
                Snapshot(
                    10.0 * (i + 1),
                    10.0,
                    {"a": Sample(rate * 10, rate * 10, 0, running, busy_s=rate * 10 * ET)},
                )
            )
        wanted = needs(rates, ET)[1:]
        assert all(u >= w for u, w in zip(used[1:], wanted, strict=True))
        best = schedule_cost(optimal_schedule(wanted, prices, 1), prices, 1)
        assert schedule_cost(used[1:], prices, 1) <= 3 * best


def test_wrong_constants_are_named():
    with pytest.raises(InvalidConfig):
        Ds2(utilization=1.5)
    with pytest.raises(InvalidConfig):
        Backlog(threshold=0)
