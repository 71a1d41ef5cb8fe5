"""PA-SPS 'lr': a straight line through the last samples; and its better half on lag features."""

from __future__ import annotations

import numpy as np

from foretide.forecast.gaps import filled
from foretide.forecast.lags import Lagged
from foretide.forecast.linear_regressors import LeastAbsolute, LeastSquares
from foretide.model import Array, Forecast


class LinearTrend:
    """Ordinary least squares of the rate on the time index over the last ``last`` windows (PA-SPS,
    section 4). Needs two windows.

    ``rate(t) = mean + b * (t - mean t)``, ``b = cov(t, rate) / var(t)``

    >>> LinearTrend().forecast(np.array([1.0, 3.0, 5.0]), horizon=2).mean
    (7.0, 9.0)
    """

    def __init__(self, last: int = 100) -> None:
        self.last = last

    def fit(self, series: Array) -> None:
        """No training: the line is fitted at every forecast."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        rates = filled(recent[-self.last :], least=2)
        at = np.arange(len(rates)) - (len(rates) - 1) / 2
        slope = (at @ rates) / (at @ at)
        return Forecast.of(rates.mean() + slope * (at[-1] + np.arange(1, horizon + 1)))


def linear_lags(lags: int = 30, steps: int = 6, most: int = 20_000) -> Lagged:
    """Least squares on the last ``lags`` windows, one equation per step ahead."""
    return Lagged(LeastSquares, lags, steps, most)


def growth_lags(lags: int = 30, steps: int = 6, most: int = 5000) -> Lagged:
    """Least absolute errors on the logarithms of the last ``lags`` windows: growth and decay, for
    loads that swing widely.
    """
    return Lagged(LeastAbsolute, lags, steps, most, scaling="log")


def median_lags(lags: int = 30, steps: int = 6, most: int = 5000) -> Lagged:
    """Least absolute errors on the last ``lags`` windows: the median, for loads with bursts."""
    return Lagged(LeastAbsolute, lags, steps, most)
