"""Which windows are new: checked against a series that is shown through a sliding window."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.forecast.new_windows import arrived


@given(st.integers(2, 40), st.integers(0, 15), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_new_windows_of_a_noisy_series_are_counted_exactly(
    lookback: int, new: int, seed: int
) -> None:
    series = np.random.default_rng(seed).normal(size=60)
    series[::7] = np.nan
    end = 40
    before, now = (
        series[max(0, end - lookback) : end],
        series[max(0, end + new - lookback) : end + new],
    )
    expected = new if new <= lookback - max(1, lookback // 2) else None
    assert arrived(before, now) == expected


def test_a_growing_past_is_followed_from_its_first_window() -> None:
    series = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    assert [arrived(series[:t], series[: t + 1]) for t in range(1, 5)] == [1, 1, 1, 1]


def test_another_series_does_not_continue() -> None:
    assert arrived(np.arange(10.0), np.arange(10.0) + 0.5) is None
    assert arrived(np.empty(0), np.arange(3.0)) is None


def test_a_flat_series_counts_one_window_per_call() -> None:
    assert arrived(np.zeros(20), np.zeros(20)) == 1
