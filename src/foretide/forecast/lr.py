"""PA-SPS 'lr': a straight line through the last samples; and its better half on lag features."""

from __future__ import annotations

import numpy as np

from foretide.forecast.lags import Lagged
from foretide.forecast.linear_regressors import LeastAbsolute, LeastSquares
from foretide.forecast.sampling import ahead, samples, windows
from foretide.model import Array, Forecast


class LinearTrend:
    """Ordinary least squares of the rate on the time index over the last ``last`` samples of
    ``sample`` windows (PA-SPS, section 3.1). Needs two samples.

    ``rate(t) = mean + b * (t - mean t)``, ``b = cov(t, rate) / var(t)``

    >>> LinearTrend().forecast(np.array([1.0, 3.0, 5.0]), horizon=2).mean
    (7.0, 9.0)
    """

    def __init__(self, last: int = 100, sample: int = 1) -> None:
        self.last = last
        self.sample = sample

    def fit(self, series: Array) -> None:
        """No training: the line is fitted at every forecast."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        rates = samples(recent, self.last, self.sample, least=2)
        at = np.arange(len(rates)) - (len(rates) - 1) / 2
        slope = (at @ rates) / (at @ at)
        next_at = at[-1] + np.arange(1, ahead(horizon, self.sample) + 1)
        return Forecast.of(windows(rates.mean() + slope * next_at, horizon, self.sample))


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
