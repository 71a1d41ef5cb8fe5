"""The upper quantile: coverage in the long run, also when the load drifts, and forecasts that meet
their own truth.
"""

from __future__ import annotations

import numpy as np
import pytest

from foretide.forecast.basic import Basic
from foretide.forecast.conformal import Conformal
from foretide.model import Array, Forecast


def covered(series: Array, horizon: int = 1, lookback: int = 50, every: int = 1) -> Array:
    """Whether each truth lay below its upper, per origin and step."""
    model = Conformal(Basic(), 0.95)
    rows = []
    for t in range(lookback, len(series) - horizon, every):
        upper = model.forecast(series[t - lookback : t], horizon).upper
        if upper is not None:
            rows.append(series[t : t + horizon] <= upper)
    return np.array(rows)


def test_coverage_holds_per_step_on_noise() -> None:
    series = np.random.default_rng(1).gamma(4.0, 25.0, 3000)
    assert covered(series, horizon=3).mean(axis=0) == pytest.approx([0.95] * 3, abs=0.015)


def test_coverage_holds_when_the_load_grows_tenfold() -> None:
    noise = np.random.default_rng(2).normal(size=4000)
    series = np.linspace(1, 10, 4000) * (100 + 10 * noise)
    assert covered(series)[2000:].mean() == pytest.approx(0.95, abs=0.02)


def test_coverage_holds_when_planning_every_third_window() -> None:
    series = np.random.default_rng(3).gamma(4.0, 25.0, 6000)
    assert covered(series, horizon=2, every=3).mean() == pytest.approx(0.95, abs=0.02)


class Exact:
    """Knows the future of one known series."""

    def __init__(self, series: Array) -> None:
        self.series = series

    def fit(self, series: Array) -> None: ...

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        at = int(np.flatnonzero(self.series == recent[-1])[0]) + 1
        return Forecast.of(self.series[at : at + horizon])


@pytest.mark.parametrize("every", [1, 2, 5])
def test_each_forecast_is_scored_against_its_own_truth(every: int) -> None:
    """Were a single one matched with another window's truth, a residual would not be zero."""
    series = np.random.default_rng(4).permutation(400).astype(float)
    model = Conformal(Exact(series), 0.9)
    for t in range(30, 380, every):
        model.forecast(series[t - 30 : t], 4)
    residuals = [r for step in range(4) for _, r in model._step(step).residuals]
    assert len(residuals) >= 4 * min(300, 340 // every)
    assert set(residuals) == {0.0}


def test_no_upper_until_enough_residuals_are_known() -> None:
    model = Conformal(Basic(), least=3)
    series = np.array([5.0, 6.0, 5.0, 7.0, 5.0, 6.0])
    given = [model.forecast(series[:t], 1).upper is not None for t in range(1, 7)]
    assert given == [False, False, False, True, True, True]


def test_windows_without_a_measurement_score_nothing() -> None:
    model = Conformal(Basic())
    series = np.array([5.0, 6.0, np.nan, 7.0])
    for t in range(1, 5):
        model.forecast(series[:t], 1)
    assert [r for _, r in model._step(0).residuals] == [1.0 / 5.0, 1.0 / 5.5]


def test_a_quantile_outside_0_and_1_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Conformal(Basic(), 1.0)
