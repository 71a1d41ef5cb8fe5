import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.errors import InvalidConfig, NotReady
from foretide.history import History
from foretide.model import Forecast, Prices, Sample, Snapshot, WindowPrices
from foretide.plan.cost_balance import (
    CostBalance,
    SimpleProactive,
    cancel_pairs,
    cost_balance,
    merge_routes,
)
from foretide.plan.optimum import needs, optimal_schedule, schedule_cost
from foretide.topology import Operator, Topology

CHAIN = Topology((Operator("a"), Operator("b", ("a",))))


def history(replicas=1, rate=100.0, backlog=0.0):
    h = History(CHAIN)
    a = Sample(
        rate * 10,
        rate * 10,
        backlog,
        replicas,
        {"b": rate * 5},
        busy_s=rate * 10 * 0.01,
        offered=rate * 10,
    )
    b = Sample(rate * 5, rate * 5, 0, replicas, {}, busy_s=rate * 5 * 0.04)
    h.append(Snapshot(10.0, 10.0, {"a": a, "b": b}))
    return h


def test_a_valley_is_bridged_exactly_while_idling_is_cheaper():
    # Keeping m replicas over dT windows costs 8000*m*dT, stopping and starting them 10000*m + 100.
    assert cost_balance([300, 100, 300], 100.0, WindowPrices(), start=3).tolist() == [3, 3, 3]
    assert cost_balance([300, 100, 100, 300], 100.0, WindowPrices(), start=3).tolist() == [
        3,
        1,
        1,
        3,
    ]
    assert cost_balance(
        [300, 100, 100, 300], 100.0, WindowPrices(route=12_001), start=3
    ).tolist() == [
        3,
        3,
        3,
        3,
    ]


def test_only_the_smaller_of_down_and_up_is_kept():
    assert cost_balance([500, 100, 300], 100.0, WindowPrices(), start=5).tolist() == [5, 3, 3]


def test_cancelling_one_valley_can_reveal_the_next():
    prices = WindowPrices(replica_window=1.0, up=1.0, down=1.0, route=0.5)
    assert cancel_pairs([4, 2, 3, 2, 4], prices, start=4).tolist() == [4, 3, 3, 3, 4]
    assert cancel_pairs([4, 2, 3, 2, 4], WindowPrices(1.0, 2.0, 2.0, 0.5), start=4).tolist() == [
        4,
        4,
        4,
        4,
        4,
    ]


def test_rerouting_merges_when_it_costs_more_than_the_replicas():
    dear = WindowPrices(replica_window=1.0, up=0.0, down=0.0, route=10.0)
    assert merge_routes([1, 2, 4], dear, start=1).tolist() == [1, 4, 4]
    assert merge_routes([4, 3, 1], dear, start=4).tolist() == [4, 4, 1]
    assert merge_routes([1, 2, 4], WindowPrices(), start=1).tolist() == [1, 2, 4]


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.floats(0, 2000), min_size=1, max_size=40),
    st.tuples(st.floats(0.1, 100), st.floats(0, 100), st.floats(0, 100), st.floats(0, 200)),
    st.integers(1, 20),
)
def test_invariants(load, prices, start):
    prices = WindowPrices(*prices)
    wanted = needs(load, 0.01)
    merged = merge_routes(wanted, prices, start)
    ours = cost_balance(load, 100.0, prices, start)
    assert (merged >= wanted).all()
    assert (ours >= wanted).all()
    slack = 1e-9 * schedule_cost(wanted, prices, start)
    first, second, third = (schedule_cost(s, prices, start) for s in (wanted, merged, ours))
    best = schedule_cost(optimal_schedule(wanted, prices, start), prices, start)
    assert best - slack <= third <= second + slack
    assert second <= first + slack


def test_the_planner_takes_the_first_window_of_the_schedule():
    ahead = {"a": Forecast((100.0, 400.0)), "b": Forecast((50.0, 200.0))}
    plan = CostBalance().plan(CHAIN, history(replicas=4), ahead)
    assert plan.replicas == {"a": 4, "b": 4}
    assert "idle ones stay" in plan.reasons["a"]
    assert CostBalance().plan(CHAIN, history(replicas=1), ahead).replicas == {"a": 1, "b": 2}


def test_a_forecast_of_the_source_alone_goes_through_the_graph():
    plan = CostBalance().plan(CHAIN, history(), {"a": Forecast((400.0,))})
    assert plan.replicas == {"a": 4, "b": 8}


def test_a_backlog_counts_only_when_asked():
    ahead = {"a": Forecast((100.0,))}
    assert CostBalance().plan(CHAIN, history(backlog=3000), ahead).replicas["a"] == 1
    assert CostBalance(drain_s=10.0).plan(CHAIN, history(backlog=3000), ahead).replicas["a"] == 4


def test_prices_come_from_a_table_too():
    assert CostBalance(prices={"route": 12_001}).prices == Prices(route=12_001)
    with pytest.raises(InvalidConfig, match="did you mean 'route'"):
        CostBalance(prices={"rout": 1})


def test_spea_takes_the_larger_of_now_and_next():
    plan = SimpleProactive().plan(
        CHAIN, history(rate=300.0), {"a": Forecast((100.0,)), "b": Forecast((200.0,))}
    )
    assert plan.replicas == {"a": 3, "b": 8}
    assert "need 3" in plan.reasons["a"]


def test_no_load_needs_one_replica():
    ahead = {"a": Forecast((0.0,)), "b": Forecast((0.0,))}
    assert CostBalance().plan(CHAIN, history(rate=0.0), ahead).replicas == {"a": 1, "b": 1}
    assert SimpleProactive().plan(CHAIN, history(rate=0.0), ahead).replicas == {"a": 1, "b": 1}


def test_without_a_forecast_there_is_no_plan():
    for planner in (CostBalance(), SimpleProactive()):
        with pytest.raises(NotReady, match="no forecast"):
            planner.plan(CHAIN, history(), {})


def test_cba_stays_close_to_the_optimum():
    rng = np.random.default_rng(3)
    ratios = []
    for _ in range(100):
        load = np.abs(rng.normal(0, 60, 100).cumsum()) + rng.uniform(0, 300, 100)
        wanted = needs(load, 0.01)
        best = schedule_cost(optimal_schedule(wanted, WindowPrices(), 1), WindowPrices(), 1)
        ratios.append(
            schedule_cost(cost_balance(load, 100.0, WindowPrices(), 1), WindowPrices(), 1) / best
        )
    assert min(ratios) >= 1 - 1e-12
    assert np.mean(ratios) < 1.02
