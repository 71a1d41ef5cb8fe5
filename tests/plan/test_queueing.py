import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.errors import Infeasible
from foretide.plan.queueing import (
    erlang_b,
    erlang_c,
    network_sojourn_s,
    sojourn_s,
    traffic,
    variability,
)


def by_factorials(k, a):
    terms = [a**n / math.factorial(n) for n in range(k + 1)]
    waiting = terms[k] * k / (k - a)
    return terms[k] / sum(terms), waiting / (sum(terms[:k]) + waiting)


@pytest.mark.parametrize(("k", "a"), [(1, 0.3), (2, 1.5), (5, 4.9), (20, 12.0), (100, 90.0)])
def test_recursion_equals_the_textbook_sums(k, a):
    b, c = by_factorials(k, a)
    assert erlang_b(k, a) == pytest.approx(b, rel=1e-12)
    assert erlang_c(k, a) == pytest.approx(c, rel=1e-12)


def test_mmk_equals_an_independent_simulation_of_the_birth_death_chain():
    rate, mu, k = 18.0, 10.0, 3
    weights = [1.0]
    for n in range(1, 2000):
        weights.append(weights[-1] * rate / (mu * min(n, k)))
    mean_in_system = sum(n * w for n, w in enumerate(weights)) / sum(weights)
    assert sojourn_s(k, rate, 1 / mu) == pytest.approx(mean_in_system / rate, rel=1e-9)


def test_stable_at_ten_thousand_servers():
    from scipy.stats import poisson

    for a in (5_000.0, 9_900.0, 9_999.0):
        exact = poisson.pmf(10_000, a) / poisson.cdf(10_000, a)
        assert erlang_b(10_000, a) == pytest.approx(exact, rel=1e-6)
        assert 0.0 <= erlang_c(10_000, a) <= 1.0
        assert math.isfinite(sojourn_s(10_000, a, 1.0))


def test_a_single_server_is_the_known_formula():
    assert sojourn_s(1, 8.0, 0.1) == pytest.approx(1 / (10 - 8))
    assert sojourn_s(1, 8.0, 0.1, variability(1.0, 0.0)) == pytest.approx(
        0.1 + 0.5 * 0.8 / (10 - 8)
    )  # M/D/1
    assert sojourn_s(2, 0.0, 0.1) == pytest.approx(0.1)
    assert sojourn_s(1, 1e9, 0.0) == 0.0


def test_what_was_not_measured_counts_as_exponential():
    assert (variability(None, None), variability(3.0, None), variability(0.0, 0.0)) == (
        1.0,
        2.0,
        0.0,
    )


@settings(deadline=None, max_examples=200)
@given(st.floats(0.01, 40.0), st.floats(0.001, 2.0), st.floats(0.0, 5.0))
def test_sojourn_falls_and_is_convex_in_replicas(a, et, spread):
    first = math.floor(a) + 1
    times = [sojourn_s(k, a / et, et, spread) for k in range(first, first + 6)]
    gains = [x - y for x, y in itertools.pairwise(times)]
    assert all(g >= -1e-12 for g in gains)
    assert all(g >= h - 1e-9 * max(1.0, times[0]) for g, h in itertools.pairwise(gains))


def test_traffic_through_a_split_a_join_and_an_amplifier():
    p = np.zeros((4, 4))
    p[0, 1], p[0, 2], p[1, 3], p[2, 3] = 0.7, 0.3, 2.0, 1.0
    assert traffic([100, 0, 0, 0], p).tolist() == pytest.approx([100, 70, 30, 170])


def test_a_loop_multiplies_its_traffic_by_the_geometric_series():
    assert traffic([8.0], [[0.2]]).tolist() == pytest.approx([10.0])


@pytest.mark.parametrize("p", [[[1.0]], [[1.5]], [[0.0, 2.0], [0.6, 0.0]]])
def test_a_loop_that_never_dies_out_is_infeasible(p):
    with pytest.raises(Infeasible, match="loop"):
        traffic(np.ones(len(p)), p)


def test_network_time_weighs_operators_by_their_visits():
    assert network_sojourn_s([10.0, 5.0, 0.0], [0.1, 0.4, math.inf], load=10.0) == pytest.approx(
        0.1 + 0.2
    )
