import numpy as np
import pytest

from foretide.errors import InvalidConfig, NotReady
from foretide.forecast.levels import Levels, faded


def test_it_follows_a_level_shift_within_a_few_windows() -> None:
    series = np.concatenate([np.full(200, 100.0), np.full(6, 10.0)])
    found = Levels().forecast(series, horizon=8)
    assert max(found.mean) < 20.0
    assert found.upper is not None
    assert max(found.upper) < 60.0, "an old level does not keep the upper quantile up"


def test_noise_is_averaged_and_covered_by_the_upper_quantile() -> None:
    rng = np.random.default_rng(2)
    series = rng.gamma(4.0, 25.0, 300)
    missed, means = [], []
    for t in range(200, 290):
        found = Levels(quantile=0.9).forecast(series[:t], horizon=6)
        assert found.upper is not None
        means.append(found.mean[5])
        missed.append(series[t + 5] > found.upper[5])
    assert 85 < np.mean(means) < 115
    assert np.std(means) < 0.5 * np.std(series), "the noise is averaged out"
    assert 0.02 <= np.mean(missed) <= 0.2


def test_a_trend_is_carried_on() -> None:
    ramp = np.linspace(10.0, 200.0, 120)
    assert Levels().forecast(ramp, horizon=4).mean[3] > 200.0


def test_one_window_is_enough_and_none_is_not() -> None:
    found = Levels().forecast(np.array([np.nan, 10.0]), horizon=3)
    assert found.mean == pytest.approx((10.0, 10.0, 10.0))
    assert found.upper is not None
    assert found.upper[0] == pytest.approx(13.0)
    with pytest.raises(NotReady):
        Levels().forecast(np.array([np.nan]), horizon=1)
    with pytest.raises(InvalidConfig, match="quantile"):
        Levels(quantile=1.0)


def test_early_averages_are_those_of_what_there_is() -> None:
    assert faded(np.array([4.0, 8.0]))[-1, 1] == pytest.approx(6.0, abs=0.2)
