"""Models of the statsforecast library behind the forecaster protocol."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from foretide.model import Array, Forecast
from foretide.series import filled, period

LEAST = 20
LEARN_AGAIN = 50  # forecasts between two fits of a model for which ``fit`` was never called


class Statistical:
    """One statsforecast model: chosen and estimated in ``fit``, then run over the latest windows
    with those parameters.

    ``model(season)`` builds it, with season 1 for none. It is estimated on the last ``last``
    windows, since the time it takes grows steeply; a season longer than ``longest`` is left out.
    Each forecast filters the last ``shown`` windows, with a season seven seasons and at least 200.
    Never fitted, it learns from ``recent`` at the first forecast and every 50th after it. Needs 20
    windows. Where an estimate is impossible (a constant load), the last window is repeated.
    """

    def __init__(
        self, model: Callable[[int], Any], last: int = 1000, longest: int = 1, shown: int = 200
    ) -> None:
        self.model = model
        self.last = last
        self.longest = longest
        self.shown = shown
        self._season = 1
        self._learned: Any = None
        self._lesson: Array = np.empty(0)
        self._fitted = False
        self._asked = 0

    def fit(self, series: Array) -> None:
        """Choose and estimate; a series too short to learn from changes nothing."""
        if np.isfinite(series[-self.last :]).sum() >= LEAST:
            self._learn(series)
            self._fitted = True

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        filled(recent, LEAST)
        if not self._fitted and self._asked % LEARN_AGAIN == 0:
            self._learn(recent)
        self._asked += 1
        values = filled(
            recent[-(self.shown if self._season == 1 else max(200, 7 * self._season)) :]
        )
        return Forecast.of(self._ahead(values, horizon))

    def state(self) -> dict[str, Any]:
        """The windows and the season that the model was estimated on: estimating is deterministic,
        and a model of the library has no other form that is safe to read from a file.
        """
        return {
            "lesson": self._lesson,
            "season": self._season,
            "fitted": self._fitted,
            "asked": self._asked,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._season = int(state["season"])
        self._fitted, self._asked = bool(state["fitted"]), int(state["asked"])
        lesson = np.asarray(state["lesson"], dtype=float)
        if len(lesson):
            self._estimate(lesson)

    def _learn(self, series: Array) -> None:
        season = period(series) if self.longest > 1 else None
        self._season = season if season is not None and season <= self.longest else 1
        self._estimate(filled(series[-max(self.last, 4 * self._season) :]))

    def _estimate(self, values: Array) -> None:
        self._lesson = values
        self._learned = self.model(self._season)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # the library warns of every start from which its search did not converge
            try:
                self._learned.fit(values)
            except (ArithmeticError, ValueError, LookupError, np.linalg.LinAlgError):
                self._learned = None

    def _ahead(self, values: Array, horizon: int) -> Array:
        still = np.full(horizon, values[-1])
        if self._learned is None or np.ptp(values) == 0:
            return still
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ahead = np.asarray(self._learned.forward(values, h=horizon)["mean"], dtype=float)
            except (ArithmeticError, ValueError, LookupError, np.linalg.LinAlgError):
                return still
        return ahead if np.isfinite(ahead).all() else still
