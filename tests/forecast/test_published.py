"""PA-SPS's forecasters with library defaults, against the libraries called by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from foretide.errors import NotReady
from foretide.forecast import FORECASTERS
from foretide.forecast.fft import DartsFourier
from foretide.forecast.sampling import samples


def load(n: int = 100) -> np.ndarray:
    rng = np.random.default_rng(n)
    return 3000 + 20 * np.arange(n) + 400 * np.sin(np.arange(n) / 5) + rng.normal(0, 50, n)


@pytest.mark.slow
def test_ann_is_the_default_perceptron_on_the_authors_samples() -> None:
    """12 samples of 5 s, counts in thousands, as in the authors' code: fit and predict by hand."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    rates = load()
    counts = rates[-60:].reshape(12, 5).sum(axis=1) / 1000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MLPRegressor(random_state=1, max_iter=1000).fit(np.arange(12)[:, None], counts)
    expected = model.predict(np.arange(12, 18)[:, None]) * 1000 / 5
    ours = FORECASTERS.build("ann", last=12, sample=5, unit=200.0, rounds=1000)
    assert ours.forecast(rates, 30).mean == pytest.approx(np.repeat(expected, 5).tolist())


@pytest.mark.slow
def test_ann_forecasts_the_same_whatever_the_unit_of_the_load() -> None:
    rates = load()
    small, large = (FORECASTERS.build("ann").forecast(rates * f, 3).mean for f in (1e-3, 1e3))
    assert np.array(large) / 1e6 == pytest.approx(small)


@pytest.mark.slow
def test_rf_is_the_default_forest() -> None:
    from sklearn.ensemble import RandomForestRegressor

    rates = load()
    model = RandomForestRegressor(random_state=0).fit(np.arange(100)[:, None], rates)
    expected = model.predict(np.arange(100, 103)[:, None])
    assert FORECASTERS.build("rf").forecast(rates, 3).mean == pytest.approx(expected.tolist())
    assert FORECASTERS.build("rf-tuned").forecast(rates, 3).mean != pytest.approx(expected.tolist())


def test_fft_is_the_cubic_and_the_ten_strongest_coefficients() -> None:
    """Against sums over all coefficients, one by one, without a Fourier transform."""
    rates = load(40)
    t = np.arange(40.0)
    cubic = np.polyfit(t, rates, 3)
    rest = rates - np.polyval(cubic, t)
    waves = [(k, np.sum(rest * np.exp(-2j * np.pi * k * t / 40))) for k in range(40)]
    kept = sorted(waves, key=lambda w: -abs(w[1]))[:10]
    expected = [
        np.polyval(cubic, at)
        + sum((c * np.exp(2j * np.pi * k * at / 40)).real for k, c in kept) / 40
        for at in range(40, 45)
    ]
    assert DartsFourier().forecast(rates, 5).mean == pytest.approx(expected, rel=1e-6)


def test_samples_are_means_of_whole_groups_and_forecasts_stand_for_their_windows() -> None:
    assert samples(np.arange(11.0), last=2, width=3, least=1).tolist() == [6.0, 9.0]
    line = FORECASTERS.build("lr", last=12, sample=5)
    ahead = line.forecast(np.arange(100.0), 7).mean
    assert ahead == pytest.approx([102.0] * 5 + [107.0] * 2)
    with pytest.raises(NotReady):
        samples(np.arange(4.0), last=12, width=5, least=1)
