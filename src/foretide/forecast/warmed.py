"""A forecaster that starts with a past: windows recorded before the loop began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from foretide.errors import NotReady
from foretide.forecast.new_windows import SeriesMemory
from foretide.model import Array, Forecast
from foretide.parts import Forecaster, Learner

LIMIT = 20_160
REHEARSED = 100


class Warmed:
    """``inner``, shown ``past`` in front of every series.

    ``inner`` learns from the past first and then forecasts its last ``REHEARSED`` windows one by
    one, so that what it learns from its own errors (weights, quantiles) is there from the start.
    With ``learned`` it has learned from the past already: the windows are forecast all the same.

    >>> from foretide.forecast.seasonal import Seasonal
    >>> warmed = Warmed(Seasonal(), np.tile([1.0, 5.0, 9.0, 5.0], 10))
    >>> warmed.forecast(np.array([1.0]), horizon=3).mean
    (5.0, 9.0, 5.0)
    """

    def __init__(self, inner: Forecaster, past: Array, learned: bool = False) -> None:
        self.inner = inner
        self.learned = learned
        self.past = np.asarray(past, dtype=float)[-LIMIT:]
        self._live = SeriesMemory(LIMIT)
        self._rehearsed = False

    def fit(self, series: Array) -> None:
        """Learn from the past and from the series that follows it."""
        self._live.learn(series)
        self.inner.fit(self.lesson(self._live.values))

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        """The forecast of ``inner`` after the past and all windows since."""
        if not self._rehearsed:
            self._rehearse(horizon)
        return self.inner.forecast(self.lesson(self._live.see(recent)), horizon)

    def lesson(self, live: Array) -> Array:
        """What ``inner`` learns from: the past, and the series that follows it."""
        return np.concatenate((self.past, live))

    def state(self) -> dict[str, Any]:
        return {
            "inner": self.inner.state() if isinstance(self.inner, Learner) else {},
            "past": self.past,
            "live": self._live.values,
            "rehearsed": self._rehearsed,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        if isinstance(self.inner, Learner):
            self.inner.restore(state["inner"])
        self.past = np.asarray(state["past"], dtype=float)
        self._live.learn(state["live"])
        self._rehearsed = bool(state["rehearsed"])

    def _rehearse(self, horizon: int) -> None:
        self._rehearsed = True
        first = max(len(self.past) // 2, len(self.past) - REHEARSED)
        if not self.learned:
            self.inner.fit(self.past[:first])
        for end in range(first, len(self.past)):
            try:
                self.inner.forecast(self.past[:end], horizon)
            except NotReady:
                continue
        if not self.learned:
            self.inner.fit(self.past)
