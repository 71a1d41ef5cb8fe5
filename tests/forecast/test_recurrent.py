"""Recurrent forecasters end to end, with networks small enough to train in a moment."""

import numpy as np
import pytest

from foretide.errors import InvalidConfig, NotReady
from foretide.forecast import FORECASTERS
from foretide.forecast.recurrent import Recurrent
from foretide.forecast.state_file import decoded, encoded
from foretide.model import Array

SMALL = {"lookback": 12, "horizon": 2, "hidden": 8, "rounds": 6}


def wave(windows: int = 400, level: float = 100.0) -> Array:
    return level * (1 + 0.5 * np.sin(2 * np.pi * np.arange(windows) / 24))


@pytest.fixture(scope="module")
def learned() -> Recurrent:
    forecaster = Recurrent(bidirectional=True, **SMALL)
    forecaster.fit(wave())
    return forecaster


@pytest.mark.slow
def test_many_windows_at_once_are_forecast_as_one_by_one(learned: Recurrent) -> None:
    series = wave()
    rows = np.stack([series[i : i + learned.lookback] for i in range(5)])
    one_by_one = [learned.forecast(row, learned.horizon).mean for row in rows]
    assert learned.forecast_many(rows) == pytest.approx(np.array(one_by_one), rel=1e-4)
    with pytest.raises(NotReady, match="not trained yet"):
        Recurrent().forecast_many(rows)


@pytest.mark.slow
def test_it_learns_a_wave_better_than_the_last_rate(learned: Recurrent) -> None:
    series, errors, naive = wave(448), [], []
    for t in range(400, 446):
        errors.append(np.array(learned.forecast(series[:t], 2).mean) - series[t : t + 2])
        naive.append(series[t - 1] - series[t : t + 2])
    assert np.square(errors).mean() < 0.5 * np.square(naive).mean()


@pytest.mark.slow
def test_a_longer_horizon_feeds_forecasts_back(learned: Recurrent) -> None:
    series = wave()
    long = learned.forecast(series, 5).mean
    assert len(long) == 5
    assert long[:2] == learned.forecast(series, 2).mean
    assert long[2:4] == pytest.approx(
        learned.forecast(np.append(series, long[:2]), 2).mean, rel=1e-4
    )


@pytest.mark.slow
def test_saved_and_restored_it_gives_identical_forecasts(learned: Recurrent) -> None:
    fresh = FORECASTERS.build("lstm")
    fresh.restore(decoded(encoded(learned.state())))  # type: ignore[attr-defined]
    for t in (50, 200, 399):
        assert fresh.forecast(wave()[:t], 4) == learned.forecast(wave()[:t], 4)


@pytest.mark.slow
def test_weights_of_another_shape_are_refused(learned: Recurrent) -> None:
    huge, cut, spoilt = learned.state(), learned.state(), learned.state()
    huge["shape"]["hidden"] = 1_000_000
    cut["trained"]["weights"] = cut["trained"]["weights"][:-1]
    spoilt["trained"]["weights"][0] = spoilt["trained"]["weights"][0] * np.nan
    for state in (huge, cut, spoilt):
        with pytest.raises(ValueError, match="not those of a network of this shape"):
            Recurrent().restore(state)


@pytest.mark.slow
def test_the_same_seed_learns_the_same_and_company_changes_nothing_that_matters() -> None:
    """Five series in one call fill more than one chunk; each comes out as if trained alone, up to
    rounding.
    """
    forecasters = [Recurrent(**{**SMALL, "rounds": 2}, seed=i) for i in range(5)]
    series = [wave(400, level) for level in (10.0, 100.0, 1e3, 1e4, 1e5)]
    together = Recurrent.train_many(forecasters, series)
    assert all(f.trained is None for f in forecasters), "training changes nothing"
    for forecaster, rates, company in zip(forecasters, series, together, strict=True):
        forecaster.fit(rates)
        alone = forecaster.forecast(rates, 2).mean
        forecaster.take(company)
        assert forecaster.forecast(rates, 2).mean == pytest.approx(alone, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("local", [False, True])
def test_odd_loads_never_give_nan_or_negative_rates(local: bool) -> None:
    rng = np.random.default_rng(1)
    gap, outlier = wave(200), wave(200)
    gap[60:90] = np.nan
    outlier[150] = 1e300
    for series in (
        np.zeros(200),
        np.full(200, 7.0),
        gap,
        outlier,
        1e-9 * wave(200),
        rng.poisson(0.05, 200).astype(float),
    ):
        forecaster = Recurrent(**{**SMALL, "rounds": 1}, local=local)
        forecaster.fit(series)
        for recent in (series, np.append(series, 1e300), np.append(series, np.nan), np.zeros(12)):
            assert all(np.isfinite(r) and r >= 0 for r in forecaster.forecast(recent, 3).mean)


def test_too_little_teaches_nothing_and_is_not_ready() -> None:
    forecaster = Recurrent(**SMALL)
    forecaster.fit(wave(27))
    forecaster.fit(np.full(100, np.nan))
    with pytest.raises(NotReady, match="after 28 windows"):
        forecaster.forecast(wave(100), 1)


@pytest.mark.slow
def test_too_short_a_past_is_not_ready(learned: Recurrent) -> None:
    with pytest.raises(NotReady, match="reads the last 12"):
        learned.forecast(wave(11), 1)


def test_untrained_state_and_impossible_settings() -> None:
    forecaster = Recurrent()
    forecaster.restore(Recurrent(cell="lstm", **SMALL).state())
    assert (forecaster.cell, forecaster.lookback, forecaster.trained) == ("lstm", 12, None)
    with pytest.raises(InvalidConfig, match="lookback is 0"):
        Recurrent(lookback=0)


def test_every_variant_is_registered_and_asks_for_the_extra() -> None:
    names = [
        prefix + cell + suffix
        for prefix in ("", "bi")
        for cell in ("lstm", "gru")
        for suffix in ("", "-local")
    ]
    for name in names:
        assert FORECASTERS[name].extra == "deep"
        built = FORECASTERS.build(name)
        assert isinstance(built, Recurrent)
        assert (built.bidirectional, built.local) == (
            name.startswith("bi"),
            name.endswith("-local"),
        )
