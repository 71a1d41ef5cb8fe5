from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.errors import InvalidRecord
from foretide.model import WindowPrices
from foretide.plan.need import need
from foretide.plan.optimum import needs, optimal_schedule, schedule_cost


def brute_force(wanted, prices, start):
    top = max(*wanted, start) + 1
    return min(
        schedule_cost(s, prices, start) for s in product(*(range(w, top + 1) for w in wanted))
    )


def naive_cost(schedule, prices, start):
    total, before = 0.0, start
    for n in schedule:
        total += prices.replica_window * n
        total += prices.up * (n - before) if n > before else prices.down * (before - n)
        total += prices.route if n != before else 0.0
        before = n
    return total


def test_published_prices_charge_every_term():
    assert schedule_cost([2, 1], WindowPrices(), start=1) == 3 * 8000 + 5000 + 5000 + 2 * 100
    assert schedule_cost([], WindowPrices(), start=3) == 0.0


def test_cost_equals_the_formula_term_by_term():
    rng = np.random.default_rng(1)
    for _ in range(100):
        prices = WindowPrices(*rng.integers(0, 100, 4).astype(float))
        schedule, start = rng.integers(1, 9, 12), int(rng.integers(1, 9))
        assert schedule_cost(schedule, prices, start) == pytest.approx(
            naive_cost(schedule.tolist(), prices, start)
        )


def test_equals_brute_force_on_random_cases():
    rng = np.random.default_rng(2)
    for _ in range(200):
        wanted = rng.integers(1, 5, rng.integers(1, 6)).tolist()
        start = int(rng.integers(1, 5))
        prices = WindowPrices(*rng.integers(0, 30, 4).astype(float))
        best = optimal_schedule(wanted, prices, start)
        assert (best >= wanted).all()
        assert schedule_cost(best, prices, start) == pytest.approx(
            brute_force(wanted, prices, start)
        ), (wanted, start, prices)


def test_a_short_valley_is_bridged_and_a_long_one_is_not():
    assert optimal_schedule([4, 1, 4], WindowPrices(), start=4).tolist() == [4, 4, 4]
    assert optimal_schedule([4, 1, 1, 1, 4], WindowPrices(), start=4).tolist() == [4, 1, 1, 1, 4]


def test_a_maximum_cuts_the_need():
    assert optimal_schedule([2, 9, 2, 2, 2], WindowPrices(), start=12, max_replicas=5).max() == 5


def test_nothing_to_plan_and_impossible_input():
    assert optimal_schedule([], WindowPrices(), start=1).size == 0
    with pytest.raises(InvalidRecord, match="negative"):
        optimal_schedule([-1], WindowPrices(), start=1)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=60),
    st.integers(1, 60),
    st.tuples(*[st.floats(0, 100)] * 4),
    st.integers(0, 2**31),
)
def test_no_schedule_that_covers_the_need_is_cheaper(wanted, start, prices, seed):
    best = optimal_schedule(wanted, WindowPrices(*prices), start)
    least = schedule_cost(best, WindowPrices(*prices), start)
    rng = np.random.default_rng(seed)
    for other in (
        np.array(wanted),
        np.full(len(wanted), max(wanted)),
        np.maximum(wanted, rng.integers(1, 61, len(wanted))),
    ):
        assert least <= schedule_cost(other, WindowPrices(*prices), start) + 1e-6


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=20), st.floats(1e-6, 1.0))
def test_needs_is_need_on_an_array(rates, et):
    assert needs(rates, et).tolist() == [need(r, et) for r in rates]
