"""The running sum against the schedule cost it stands for."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.model import Prices
from foretide.plan.optimum import schedule_cost
from foretide.web.cost import Meter

SCHEDULES = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=1, max_size=30)
)


@settings(deadline=None, max_examples=80)
@given(SCHEDULES, st.builds(Prices, *(st.floats(0, 1e4) for _ in range(4))))
def test_paid_is_the_schedule_cost_of_all_operators(
    schedule: list[list[int]], prices: Prices
) -> None:
    meter = Meter(prices)
    for row in schedule:
        meter.add(np.array(row, dtype=float), np.array(row, dtype=float), 2.0)
    columns = np.array(schedule).T
    np.testing.assert_allclose(
        meter.paid,
        sum(schedule_cost(c, prices.per_window(2.0), int(c[0])) for c in columns),
        rtol=1e-9,
        atol=1e-6,
    )
    expected = sum(
        schedule_cost(np.full(len(c), c.max()), prices.per_window(2.0), int(c.max()))
        for c in columns
    )
    assert meter.static_peak is not None
    np.testing.assert_allclose(meter.static_peak, expected, rtol=1e-9, atol=1e-6)


def test_static_peak_is_unknown_until_every_need_was_known_once() -> None:
    meter = Meter(Prices())
    meter.add(np.array([1.0, 1.0]), np.array([2.0, np.nan]), 1.0)
    assert meter.static_peak is None
    meter.add(np.array([1.0, 1.0]), np.array([1.0, 3.0]), 1.0)
    assert meter.peak == 5
