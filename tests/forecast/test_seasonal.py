"""Seasons: found in the load, repeated, and told from noise."""

from __future__ import annotations

import numpy as np
import pytest

from foretide.errors import NotReady
from foretide.forecast.evaluate import evaluate
from foretide.forecast.lr import linear_lags
from foretide.forecast.seasonal import Seasonal, SeasonalLags
from foretide.model import Array
from foretide.series import period


def daily(days: int, rows: int = 48, noise: float = 5.0, seed: int = 1) -> Array:
    """A sharp daily shape on slowly wandering levels."""
    rng = np.random.default_rng(seed)
    shape = np.random.default_rng(99).gamma(2.0, 50.0, rows)
    return np.maximum(
        0,
        np.tile(shape, days) * (1 + 0.3 * np.sin(np.arange(days * rows) / 400))
        + rng.normal(0, noise, days * rows),
    )


@pytest.mark.parametrize("rows", [7, 24, 48, 288])
def test_the_period_of_a_daily_load_is_found(rows: int) -> None:
    assert period(daily(12, rows)) == rows


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_no_period(seed: int) -> None:
    assert period(np.random.default_rng(seed).gamma(4, 25, 2000)) is None


def test_a_constant_and_a_line_have_no_period() -> None:
    assert period(np.full(200, 3.0)) is None
    assert period(np.linspace(0, 1e9, 500)) is None
    assert period(np.full(200, np.nan)) is None


def test_the_last_season_is_repeated_from_memory_beyond_recent() -> None:
    series = daily(10, noise=0)
    forecaster = Seasonal()
    forecaster.fit(series[:430])
    assert forecaster.forecast(series[425:435], 3).mean == pytest.approx(
        series[435 - 48 : 438 - 48].tolist()
    )


def test_a_given_period_must_have_been_seen_once() -> None:
    with pytest.raises(NotReady, match="season of 48"):
        Seasonal(period=48).forecast(np.ones(20), 1)


def test_seasonal_lags_halve_the_error_of_plain_lags_on_a_sharp_daily_shape() -> None:
    series = daily(30)
    plain, _ = evaluate("lr-lags", lambda seed: linear_lags(lags=12), series, 6, quantile=None)
    season, _ = evaluate("seasonal-lags", lambda seed: SeasonalLags(), series, 6, quantile=None)
    assert season.mae < 0.5 * plain.mae
