"""Lag features: the next windows from the last ones, with any regressor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from foretide.errors import NotReady
from foretide.model import Array, Forecast
from foretide.series import filled

Scaling = Literal["window", "minmax", "log"]
LEAST_PAIRS = 10


def pairs(series: Array, lags: int, steps: int) -> tuple[Array, Array]:
    """Every ``lags`` windows in a row and the ``steps`` that followed them.

    >>> pairs(np.array([1.0, 2.0, 3.0, 4.0]), lags=2, steps=1)
    (array([[1., 2.],
           [2., 3.]]), array([[3.],
           [4.]]))
    """
    rows = np.lib.stride_tricks.sliding_window_view(series, lags + steps)
    return rows[:, :lags], rows[:, lags:]


def level(rows: Array) -> Array:
    """The mean of each row, 1 where that is 0: divided by it, a load that outgrows its past looks
    like its past.
    """
    means = rows.mean(axis=1)
    return np.where(means > 0, means, 1.0)


class Lagged:
    """The next ``steps`` windows at once from the last ``lags``, by a regressor with ``fit(X, Y,
    weights)`` and ``predict(X)``.

    Scaling ``window`` divides each input and its answer by the input's mean, which is also the
    pair's weight, since an error counts in events/s; ``minmax`` maps the range of the training
    windows to 0..1; ``log`` takes the logarithm of the rate plus 1 % of its mean, less that of the
    newest window, so that the model forecasts growth, limited to ten times the highest input.

    It is trained in ``fit`` on the last ``most`` windows; without a ``fit``, on ``recent`` at
    every forecast. A longer horizon feeds forecasts back as inputs. Needs ``lags + steps + 9``
    windows to learn.
    """

    def __init__(
        self,
        regressor: Callable[[], Any],
        lags: int = 30,
        steps: int = 6,
        most: int = 5000,
        scaling: Scaling = "window",
    ) -> None:
        self.regressor = regressor
        self.lags = lags
        self.steps = steps
        self.most = most
        self.scaling = scaling
        self._model: Any = None
        self._lesson: Array = np.empty(0)
        self._range = (0.0, 1.0)
        self._offset = 1.0

    @property
    def least(self) -> int:
        return self.lags + self.steps + LEAST_PAIRS - 1

    def fit(self, series: Array) -> None:
        """Learn; a series too short to learn from changes nothing."""
        if np.isfinite(series[-self.most :]).sum() >= self.least:
            self._lesson = filled(series[-self.most :])
            self._model = self._learned(self._lesson)

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        if self._model is None:
            values = filled(recent[-self.most :], self.least)
            model = self._learned(values)
        else:
            values, model = filled(recent[-self.lags :]), self._model
        if len(values) < self.lags:
            raise NotReady(
                f"{len(values)} windows measured so far; this forecaster needs {self.lags}"
            )
        inputs, ahead = values[-self.lags :], np.empty(0)
        while len(ahead) < horizon:
            block = self._answer(model, inputs)
            ahead = np.concatenate((ahead, block))
            inputs = np.concatenate((inputs, block))[-self.lags :]
        return Forecast.of(ahead[:horizon])

    def state(self) -> dict[str, Any]:
        """The windows that it learned from. Learning is deterministic, and a regressor of a library
        has no other form that is safe to read from a file.
        """
        return {"lesson": self._lesson}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.fit(np.asarray(state["lesson"], dtype=float))

    def _learned(self, values: Array) -> Any:
        if self.scaling == "log":
            self._offset = 0.01 * float(values.mean()) or 1.0
            values = np.log(values + self._offset)
        elif self.scaling == "minmax":
            self._range = (float(values.min()), max(float(np.ptp(values)), 1e-12))
        x, y = pairs(values, self.lags, self.steps)
        shift, scale = self._scale(x)
        model = self.regressor()
        model.fit((x - shift) / scale, (y - shift) / scale, scale[:, 0] / scale.mean())
        return model

    def _answer(self, model: Any, inputs: Array) -> Array:
        row = (np.log(inputs + self._offset) if self.scaling == "log" else inputs)[None]
        shift, scale = self._scale(row)
        answer: Array = np.asarray(model.predict((row - shift) / scale), dtype=float).reshape(1, -1)
        rates: Array = (answer * scale + shift)[0]
        if self.scaling == "log":
            rates = np.exp(np.minimum(rates, row.max() + np.log(10.0))) - self._offset
        return np.maximum(rates, 0.0)

    def _scale(self, rows: Array) -> tuple[Array, Array]:
        """What is taken from each row, and what it is then divided by."""
        none, one = np.zeros((len(rows), 1)), np.ones((len(rows), 1))
        if self.scaling == "minmax":
            return none + self._range[0], one * self._range[1]
        return (rows[:, -1:], one) if self.scaling == "log" else (none, level(rows)[:, None])
