"""The straight line against values worked out by hand and by a polynomial fit; lag regressions on
processes they can learn.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.errors import NotReady
from foretide.forecast.lr import LinearTrend, growth_lags, linear_lags, median_lags


def test_golden_line_by_hand() -> None:
    """Rates 2, 3, 7 at 0, 1, 2: mean 4, slope (-1*2 + 0*3 + 1*7) / 2 = 2.5; at 3 and 4: 4 + 2.5*2,
    4 + 2.5*3.
    """
    assert LinearTrend().forecast(np.array([2.0, 3.0, 7.0]), 2).mean == pytest.approx((9.0, 11.5))


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=150), st.integers(1, 12))
@settings(max_examples=50, deadline=None)
def test_golden_line_by_polynomial_fit_of_the_last_100(rates: list[float], horizon: int) -> None:
    series = np.array(rates)
    last = series[-100:]
    line = np.polynomial.Polynomial.fit(np.arange(len(last)), last, 1)
    expected = np.maximum(line(np.arange(len(last), len(last) + horizon)), 0)
    np.testing.assert_allclose(
        LinearTrend().forecast(series, horizon).mean, expected, rtol=1e-6, atol=1e-3
    )


def test_a_falling_line_stops_at_zero() -> None:
    assert LinearTrend().forecast(np.array([3.0, 2.0, 1.0]), 3).mean == pytest.approx(
        (0.0, 0.0, 0.0)
    )


def test_one_window_draws_no_line() -> None:
    with pytest.raises(NotReady, match="needs 2"):
        LinearTrend().forecast(np.array([3.0]), 1)


@pytest.mark.parametrize("model", [linear_lags, median_lags])
def test_lags_learn_an_autoregression(model: object) -> None:
    """rate(t) = 20 + 0.5 rate(t-1) + 0.3 rate(t-2) + noise: one step ahead the error comes down to
    the noise, sd 2.
    """
    rng = np.random.default_rng(1)
    series = [100.0, 100.0]
    for _ in range(3000):
        series.append(20 + 0.5 * series[-1] + 0.3 * series[-2] + rng.normal(0, 2))
    values = np.array(series)
    forecaster = model()  # type: ignore[operator]
    forecaster.fit(values[:2500])
    errors = [forecaster.forecast(values[:t], 1).mean[0] - values[t] for t in range(2500, 3000)]
    assert np.std(errors) < 2.15


def test_lags_follow_a_load_that_outgrows_its_past() -> None:
    wave = 100 + 50 * np.sin(2 * np.pi * np.arange(900) / 24)
    forecaster = linear_lags()
    forecaster.fit(wave[:600])
    assert forecaster.forecast(5 * wave[:820], 6).mean == pytest.approx(5 * wave[820:826], rel=0.02)


def test_a_longer_horizon_feeds_forecasts_back() -> None:
    wave = 100 + 50 * np.sin(2 * np.pi * np.arange(900) / 24)
    forecaster = linear_lags(steps=6)
    assert forecaster.forecast(wave[:820], 20).mean == pytest.approx(wave[820:840], rel=0.05)


def test_median_lags_ignore_bursts_that_pull_the_mean_up() -> None:
    rng = np.random.default_rng(2)
    series = np.where(rng.random(2000) < 0.1, 1000.0, 100.0) + rng.normal(0, 1, 2000)
    mean, median = linear_lags(), median_lags()
    mean.fit(series)
    median.fit(series)
    assert np.mean(
        [mean.forecast(series[:t], 1).mean[0] for t in range(1800, 2000)]
    ) == pytest.approx(190, abs=25)
    assert np.mean(
        [median.forecast(series[:t], 1).mean[0] for t in range(1800, 2000)]
    ) == pytest.approx(100, abs=10)


def test_growth_lags_continue_growth_in_per_cent_beyond_all_they_saw() -> None:
    rng = np.random.default_rng(7)
    series = 50 * np.exp(0.01 * np.arange(400) + rng.normal(0, 0.01, 400))
    forecaster = growth_lags()
    forecaster.fit(series[:300])
    expected = 50 * np.exp(0.01 * np.arange(400, 406))
    assert forecaster.forecast(series, 6).mean == pytest.approx(expected, rel=0.03)
