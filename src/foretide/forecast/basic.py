"""PA-SPS 'basic': the next windows equal the last one that was measured."""

from __future__ import annotations

import numpy as np

from foretide.model import Array, Forecast
from foretide.series import filled


class Basic:
    """Persistence (PA-SPS, section 4): the mean of the last ``span`` windows, again and again.
    Needs one window.

    A system that plans every 30 windows takes the last 30 for its last planning window.

    >>> Basic().forecast(np.array([3.0, 5.0]), horizon=2).mean
    (5.0, 5.0)
    """

    def __init__(self, span: int = 1) -> None:
        self.span = span

    def fit(self, series: Array) -> None:
        """Nothing to learn."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        return Forecast.of(np.full(horizon, filled(recent)[-self.span :].mean()))
