"""A scikit-learn perceptron with a fixed number of training rounds and no warning about it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from threadpoolctl import ThreadpoolController

from foretide.model import Array

_THREADS = ThreadpoolController()  # on matrices this small, threads cost six times what they save


class DefaultPerceptron:
    """scikit-learn's MLPRegressor with nothing set but the seed and, where asked for, the number of
    training rounds (its default is 200). Stopping before it converged is part of the defaults.
    """

    def __init__(self, rounds: int = 200, seed: int = 1) -> None:
        self._model: Any = MLPRegressor(max_iter=rounds, random_state=seed)

    def fit(self, x: Array, y: Array) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._model.fit(x, y)

    def predict(self, x: Array) -> Array:
        return np.asarray(self._model.predict(x), dtype=float)


class Perceptron:
    """A multi-layer perceptron trained by L-BFGS for at most ``rounds`` rounds. Stopping there is
    intended, so the library's convergence warning is suppressed.
    """

    def __init__(self, hidden: tuple[int, ...], rounds: int, seed: int) -> None:
        self._model: Any = MLPRegressor(
            hidden_layer_sizes=hidden,
            activation="tanh",
            solver="lbfgs",
            alpha=1e-3,
            max_iter=rounds,
            random_state=seed,
        )

    def fit(self, x: Array, y: Array, weights: Array | None = None) -> None:
        """Train. ``weights`` are ignored: not every release of the library accepts them here."""
        with warnings.catch_warnings(), _THREADS.limit(limits=1, user_api="blas"):
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._model.fit(x, y)

    def predict(self, x: Array) -> Array:
        return np.asarray(self._model.predict(x), dtype=float)
