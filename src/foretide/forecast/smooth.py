"""Simple exponential smoothing: the next windows equal a fading average of the last ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from foretide.model import Array, Forecast
from foretide.series import filled

WEIGHTS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
LAST = 120  # windows looked at: the weight of an older one is below 0.3 % at the slowest


class Smooth:
    """``level = sum_i a * (1 - a)^i * rate[-1-i]``, weights scaled to sum to 1, over the last 120
    windows. Needs one window.

    ``fit`` keeps the weight ``a`` that had the least absolute error one step ahead; before that it
    is 0.3.

    >>> Smooth(weight=0.5).forecast(np.array([0.0, 0.0, 7.0]), horizon=2).mean
    (4.0, 4.0)
    """

    def __init__(self, weight: float = 0.3) -> None:
        self.weight = weight

    def fit(self, series: Array) -> None:
        if np.isfinite(series[-20_000:]).sum() >= LAST + 10:
            rates = filled(series[-20_000:])
            rows, truth = np.lib.stride_tricks.sliding_window_view(rates, LAST)[:-1], rates[LAST:]
            self.weight = min(
                WEIGHTS, key=lambda a: float(np.abs(rows @ fading(a, LAST) - truth).sum())
            )

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        rates = filled(recent[-LAST:])
        return Forecast.of(np.full(horizon, rates @ fading(self.weight, len(rates))))

    def state(self) -> dict[str, Any]:
        return {"weight": self.weight}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.weight = float(state["weight"])


def fading(weight: float, n: int) -> Array:
    """``n`` weights that sum to 1, the newest last."""
    weights = (1 - weight) ** np.arange(n - 1, -1, -1)
    return np.asarray(weights / weights.sum())
