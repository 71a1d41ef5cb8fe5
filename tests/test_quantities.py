"""The shared formulas against naive ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.model import Latency, Prices, Sample
from foretide.quantities import (
    cost,
    from_outside,
    latency,
    merged_latency,
    need,
    needs,
    percentiles,
)

VALUES = st.lists(st.floats(0, 1e3), min_size=1, max_size=40)
SHARES = st.floats(0.01, 1.0)


@settings(deadline=None)
@given(VALUES, SHARES)
def test_a_percentile_is_the_nearest_rank(values: list[float], share: float) -> None:
    rank = max(1, math.ceil(share * len(values) * (1 - 1e-12)))
    assert percentiles(np.array(values), (share,)) == [sorted(values)[rank - 1]]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 5)), min_size=1, max_size=20), SHARES)
def test_a_weight_stands_for_so_many_equal_events(
    groups: list[tuple[int, int]], share: float
) -> None:
    every = np.array([float(v) for v, n in groups for _ in range(n)])
    values, weights = (np.array(column, dtype=float) for column in zip(*groups, strict=True))
    assert percentiles(values, (share,), weights) == percentiles(every, (share,))


def test_a_latency_record_has_nearest_ranks_and_an_exact_mean() -> None:
    record = latency(np.array([0.4, 0.1, 0.3, 0.2], np.float32), target_s=0.25)
    assert record is not None
    assert (record.p50_ms, record.p90_ms, record.p99_ms, record.mean_ms) == pytest.approx(
        (200, 400, 400, 250)
    )
    assert (record.count, record.within) == (4, 2)
    assert latency(np.zeros(0, np.float32), target_s=1.0) is None
    exact = latency(np.array([1.0, 2.0]), np.array([3.0, 1.0]), mean_s=1.3)
    assert exact is not None
    assert (exact.count, exact.mean_ms, exact.p50_ms, exact.within) == (4, 1300, 1000, None)


def test_merged_latency_counts_exactly_and_never_understates_a_percentile() -> None:
    a, b = Latency(10, 20, 20, 30, 40, within=10), Latency(30, 40, 25, 28, 400, within=15)
    assert merged_latency([a, None, b]) == Latency(40, 35, 25, 30, 400, within=25)
    assert merged_latency([a, Latency(30, 40, 25, 28, 400)]) == Latency(40, 35, 25, 30, 400)
    assert merged_latency([None, Latency(0, 0, 0, 0, 0)]) is None


@given(st.floats(0, 1e6), st.floats(1e-6, 10))
def test_need_of_one_rate_is_need_of_an_array(rate: float, service_time_s: float) -> None:
    assert need(rate, service_time_s) == int(needs([rate], service_time_s)[0])
    assert need(rate, service_time_s) >= rate * service_time_s * (1 - 2e-9)


def test_cost_is_the_same_summed_over_windows_or_over_operators() -> None:
    prices = Prices(replica_second=800.0)
    schedule = np.array([[1.0, 2.0, 2.0], [3.0, 1.0, 1.0]])
    change = np.diff(schedule, axis=1, prepend=schedule[:, :1])
    by_operator = sum(cost(10 * n.sum(), d, prices) for n, d in zip(schedule, change, strict=True))
    by_window = sum(
        cost(10 * n.sum(), d, prices) for n, d in zip(schedule.T, change.T, strict=True)
    )
    # 100 replica-seconds, one start, two stops, two re-routings
    assert by_operator == by_window == 100 * 800 + 5000 + 2 * 5000 + 2 * 100


def test_load_from_outside_is_offered_or_else_all_that_arrived() -> None:
    assert from_outside(Sample(12, 12, 0, 1, offered=0.0)) == 0
    assert from_outside(Sample(12, 12, 0, 1)) == 12
