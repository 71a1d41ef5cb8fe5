import numpy as np
import pytest

from foretide.forecast.auto import Auto
from foretide.forecast.conformal import Conformal
from foretide.forecast.warmed import Warmed

SEASON = 20 + 120 * np.maximum(0.0, np.sin(2 * np.pi * (np.arange(12) / 12 - 0.35))) ** 1.5


def test_a_season_seen_before_is_forecast_in_its_first_windows() -> None:
    """Without the past, nothing but the last rate is known then."""
    past = np.tile(SEASON, 12)
    live = np.tile(SEASON, 3)
    warmed, cold = Warmed(Auto(), past), Auto()
    errors = {"warmed": 0.0, "cold": 0.0}
    for t in range(1, 12):
        for name, forecaster in (("warmed", warmed), ("cold", cold)):
            errors[name] += abs(forecaster.forecast(live[:t], 2).mean[1] - live[t + 1])
    assert errors["warmed"] < 0.2 * errors["cold"]


def test_a_quantile_is_known_from_the_first_window() -> None:
    noise = np.random.default_rng(1).normal(1, 0.05, 144)
    warmed = Warmed(Conformal(Auto(), 0.9), np.tile(SEASON, 12) * noise)
    first = warmed.forecast(SEASON[:1], 2)
    assert first.upper is not None
    assert all(u >= m for u, m in zip(first.upper, first.mean, strict=True))


def test_windows_that_slide_out_of_sight_are_kept() -> None:
    warmed = Warmed(Auto(), np.tile(SEASON, 12))
    live = np.tile(SEASON, 20)
    for t in range(1, 200):
        ahead = warmed.forecast(live[max(0, t - 30) : t], 1)
    assert ahead.mean[0] == pytest.approx(live[199], abs=8)
