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
HIDDEN, MINIBATCH, DECAY, TOLERANCE, PATIENCE = 100, 200, 1e-4, 1e-4, 10
"""Defaults of the library."""


class DefaultPerceptron:
    """scikit-learn's MLPRegressor with nothing set but the seed and, where asked for, the number of
    training rounds (its default is 200), from one number to one number. Stopping before it
    converged is part of the defaults.

    Up to 200 samples are one minibatch there. Such a training is done here, with the same random
    start and the same steps: the same weights but for rounding, in an eighth of the time. More
    samples go to the library.
    """

    def __init__(self, rounds: int = 200, seed: int = 1) -> None:
        self._rounds, self._seed = rounds, seed
        self._model: Any = MLPRegressor(max_iter=rounds, random_state=seed)
        self._weights: Array | None = None

    def fit(self, x: Array, y: Array) -> None:
        if x.shape[1] == 1 and len(y) <= MINIBATCH:
            with _THREADS.limit(limits=1, user_api="blas"):
                self._weights = _trained(x[:, 0], y, self._rounds, self._seed)
            return
        self._weights = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._model.fit(x, y)

    def predict(self, x: Array) -> Array:
        if self._weights is None:
            return np.asarray(self._model.predict(x), dtype=float)
        slope, shift, out = np.split(self._weights[:-1], 3)
        return np.asarray(np.maximum(x * slope + shift, 0.0) @ out + self._weights[-1])


def _start(seed: int) -> Array:
    """The library's first weights: of the hidden layer, its biases, of the output, its bias."""
    random = np.random.RandomState(seed)
    layers = []
    for inputs, outputs in ((1, HIDDEN), (HIDDEN, 1)):
        bound = np.sqrt(6.0 / (inputs + outputs))
        layers.append(random.uniform(-bound, bound, inputs * outputs))
        layers.append(random.uniform(-bound, bound, outputs))
    return np.concatenate(layers)


def _trained(x: Array, y: Array, rounds: int, seed: int) -> Array:
    """Weights after Adam's steps on all samples at once: squared error, rectified hidden units, a
    small decay of the weights but not of the biases; it ends when the loss has not fallen by
    ``TOLERANCE`` for more than ten rounds.
    """
    n, weights = len(y), _start(seed)
    first, out = weights[: 2 * HIDDEN].reshape(2, HIDDEN), weights[2 * HIDDEN : -1]
    mean, square, slope = np.zeros_like(weights), np.zeros_like(weights), np.zeros_like(weights)
    slope_first, slope_out = slope[: 2 * HIDDEN].reshape(2, HIDDEN), slope[2 * HIDDEN : -1]
    decay = np.full_like(weights, DECAY)
    decay[HIDDEN : 2 * HIDDEN] = decay[-1] = 0.0
    inputs = np.column_stack([x, np.ones(n)])
    best, stale = np.inf, 0
    for step in range(1, rounds + 1):
        active = np.maximum(inputs @ first, 0.0)
        error = active @ out + weights[-1] - y
        shrink = decay * weights
        loss = 0.5 * float(error @ error + shrink @ weights) / n
        slope_first[:] = (inputs.T * error) @ (active > 0).astype(float) * out
        slope_out[:] = error @ active
        slope[-1] = error.sum()
        slope += shrink
        slope /= n
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        rate = 1e-3 * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
        weights -= rate * mean / (np.sqrt(square) + 1e-8)
        stale = stale + 1 if loss > best - TOLERANCE else 0
        best = min(best, loss)
        if stale > PATIENCE:
            break
    return weights


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
