"""A forecaster that starts with a past: windows recorded before the loop began."""

from __future__ import annotations

import numpy as np

from foretide.errors import NotReady
from foretide.forecast.new_windows import SeriesMemory
from foretide.model import Array, Forecast
from foretide.parts import Forecaster

LIMIT = 20_160
REHEARSED = 100


class Warmed:
    """``inner``, shown ``past`` in front of every series.

    ``inner`` learns from the past first and then forecasts its last ``REHEARSED`` windows one by
    one, so that what it learns from its own errors (weights, quantiles) is there from the start.

    >>> from foretide.forecast.seasonal import Seasonal
    >>> warmed = Warmed(Seasonal(), np.tile([1.0, 5.0, 9.0, 5.0], 10))
    >>> warmed.forecast(np.array([1.0]), horizon=3).mean
    (5.0, 9.0, 5.0)
    """

    def __init__(self, inner: Forecaster, past: Array) -> None:
        self.inner = inner
        self.past = np.asarray(past, dtype=float)[-LIMIT:]
        self._live = SeriesMemory(LIMIT)
        self._rehearsed = False

    def fit(self, series: Array) -> None:
        """Learn from the past and from the series that follows it."""
        self._live.learn(series)
        self.inner.fit(self._all(self._live.values))

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        """The forecast of ``inner`` after the past and all windows since."""
        if not self._rehearsed:
            self._rehearse(horizon)
        return self.inner.forecast(self._all(self._live.see(recent)), horizon)

    def _all(self, live: Array) -> Array:
        return np.concatenate((self.past, live))

    def _rehearse(self, horizon: int) -> None:
        self._rehearsed = True
        first = max(len(self.past) // 2, len(self.past) - REHEARSED)
        self.inner.fit(self.past[:first])
        for end in range(first, len(self.past)):
            try:
                self.inner.forecast(self.past[:end], horizon)
            except NotReady:
                continue
        self.inner.fit(self.past)
