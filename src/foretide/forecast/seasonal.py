"""Seasonal persistence: the same window of the last day; and a regression that also looks at the
days before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from foretide.errors import NotReady
from foretide.forecast.lags import LEAST_PAIRS, level
from foretide.forecast.linear_regressors import LeastAbsolute, LeastSquares
from foretide.forecast.new_windows import SeriesMemory
from foretide.model import Array, Forecast
from foretide.series import filled
from foretide.series import period as period_of

LIMIT = 20_160  # windows remembered: two weeks of minutes


class Seasonal:
    """The rate one season ago, ``rate(t) = rate(t - period)``; the field's standard rival for daily
    loads.

    Without ``period`` (windows per season) it is found in the series, at ``fit`` or in what was
    seen so far; a load without a season repeats its last window.

    >>> Seasonal(period=3).forecast(np.array([9.0, 1.0, 2.0, 3.0]), horizon=4).mean
    (1.0, 2.0, 3.0, 1.0)
    """

    def __init__(self, period: int | None = None) -> None:
        self.period = period
        self._season: int | None = None
        self._memory = SeriesMemory(LIMIT)
        self._fitted = False

    def fit(self, series: Array) -> None:
        self._memory.learn(series)
        self._season = period_of(series)
        self._fitted = True

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        rates = filled(self._memory.see(recent))
        season = self.period or (self._season if self._fitted else period_of(rates)) or 1
        if len(rates) < season:
            raise NotReady(
                f"{len(rates)} windows measured so far; a season of {season} must have been seen "
                "once"
            )
        return Forecast.of(rates[len(rates) - season + np.arange(horizon) % season])

    def state(self) -> dict[str, Any]:
        return {
            "memory": self._memory.values,
            "season": self._season,
            "fitted": self._fitted,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._memory.learn(state["memory"])
        self._season = None if state["season"] is None else int(state["season"])
        self._fitted = bool(state["fitted"])


class SeasonalLags:
    """Least squares per step ahead, or with ``absolute`` least absolute errors, on the last
    ``lags`` windows and on the same time one, two and seven seasons ago.

    For each of those seasons: the very window that is forecast, the mean of seven around it, and
    the mean of the four before the same time of day as now, which separates a level that changed
    since then from a shape that did not. Every row is divided by the mean of its last windows.
    Seasons that the memory cannot reach back to are left out; without any it is a regression on
    lags. It is trained in ``fit``; without a ``fit``, at every forecast. A longer horizon feeds
    forecasts back.
    """

    def __init__(
        self, lags: int = 12, steps: int = 6, period: int | None = None, absolute: bool = False
    ) -> None:
        self.lags = lags
        self.steps = steps
        self.period = period
        self.absolute = absolute
        self._memory = SeriesMemory(LIMIT)
        self._models: list[LeastSquares] = []
        self._shifts: tuple[int, ...] = ()

    @property
    def least(self) -> int:
        return self.lags + self.steps + LEAST_PAIRS - 1

    def fit(self, series: Array) -> None:
        """Learn; a series too short to learn from changes nothing."""
        self._memory.learn(series)
        if np.isfinite(self._memory.values).sum() >= self.least:
            self._shifts, self._models = self._learned(filled(self._memory.values))

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        values = filled(self._memory.see(recent))
        shifts, models = self._shifts, self._models
        if not models or len(values) < max((self.lags, *(s + 4 for s in shifts))):
            shifts, models = self._learned(filled(values, self.least))
        ahead = np.empty(0)
        while len(ahead) < horizon:
            now = np.array([len(values)])
            block, total = np.empty(self.steps), cumulated(values)
            for step, model in enumerate(models):
                x, scale = features(values, total, now, step, self.lags, shifts)
                block[step] = max(0.0, float(model.predict(x)[0, 0] * scale[0]))
            ahead, values = np.concatenate((ahead, block)), np.concatenate((values, block))
        return Forecast.of(ahead[:horizon])

    def state(self) -> dict[str, Any]:
        return {
            "memory": self._memory.values,
            "shifts": self._shifts,
            "coefficients": [model.coefficients for model in self._models],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._memory.learn(state["memory"])
        self._shifts = tuple(int(s) for s in state["shifts"])
        self._models = []
        for coefficients in state["coefficients"]:
            model = LeastSquares()
            model.coefficients = np.asarray(coefficients, dtype=float)
            self._models.append(model)

    def _learned(self, values: Array) -> tuple[tuple[int, ...], list[LeastSquares]]:
        season = self.period or period_of(values)
        seasons = [season * k for k in (1, 2, 7)] if season else []
        most = len(values) - self.steps - max(self.least, len(values) // 3)
        shifts = tuple(s for s in seasons if self.steps < s and s + 4 <= most)
        models, total = [], cumulated(values)
        for step in range(self.steps):
            now = np.arange(max((self.lags, *(s + 4 for s in shifts))), len(values) - step)
            x, scale = features(values, total, now, step, self.lags, shifts)
            model = LeastAbsolute() if self.absolute else LeastSquares()
            model.fit(x, (values[now + step] / scale)[:, None], scale / scale.mean())
            models.append(model)
        return shifts, models


def cumulated(values: Array) -> Array:
    """Sums of the first 0, 1, 2, ... values."""
    return np.concatenate(([0.0], np.cumsum(values)))


def features(
    values: Array,
    total: Array,
    now: npt.NDArray[np.intp],
    step: int,
    lags: int,
    shifts: tuple[int, ...],
) -> tuple[Array, Array]:
    """One row per origin in ``now`` (the index of the window that comes next), and what each row
    was divided by.
    """
    near = np.stack([values[now - i] for i in range(lags, 0, -1)], axis=1)
    columns = [near]
    for shift in shifts:
        then = now + step - shift
        start, end = np.maximum(then - 3, 0), np.minimum(then + 4, now)
        around = (total[end] - total[start]) / (end - start)
        before = (total[now - shift] - total[now - shift - 4]) / 4
        columns.append(np.stack((values[then], around, before), axis=1))
    scale = level(near)
    return np.hstack(columns) / scale[:, None], scale
