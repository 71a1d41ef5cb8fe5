"""The default perceptron trains as the library does."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from foretide.forecast.perceptron import MINIBATCH, DefaultPerceptron


def wave(samples: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0, 0.5, samples)
    return 10 + 5 * np.sin((np.arange(samples) + 40 * seed) / 30) + noise


@pytest.mark.parametrize(
    ("samples", "rounds", "seed"),
    [(10, 200, 1), (12, 200, 0), (100, 200, 1), (100, 200, 4), (100, 7, 2), (MINIBATCH, 200, 3)],
)
def test_the_forecast_is_that_of_the_library(samples: int, rounds: int, seed: int) -> None:
    x, y = np.arange(float(samples))[:, None], wave(samples, seed)
    library = MLPRegressor(max_iter=rounds, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        library.fit(x, y)
    ours = DefaultPerceptron(rounds, seed)
    ours.fit(x, y)
    ahead = np.arange(samples, samples + 6.0)[:, None]
    np.testing.assert_allclose(ours.predict(ahead), library.predict(ahead), rtol=1e-6)
    assert ours._weights is not None


def test_a_load_that_stops_early_stops_where_the_library_does() -> None:
    x, y = np.arange(100.0)[:, None], np.zeros(100)
    library, ours = MLPRegressor(random_state=1), DefaultPerceptron()
    library.fit(x, y)
    ours.fit(x, y)
    assert library.n_iter_ < 200
    np.testing.assert_allclose(ours.predict(x), library.predict(x), rtol=1e-6, atol=1e-9)


def test_more_samples_than_a_minibatch_are_the_library_s() -> None:
    x, y = np.arange(250.0)[:, None], wave(250, 1)
    ours, library = DefaultPerceptron(3), MLPRegressor(max_iter=3, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        library.fit(x, y)
    ours.fit(x, y)
    assert ours._weights is None
    np.testing.assert_allclose(ours.predict(x), library.predict(x))
