"""DABS-Storm 'regression': the best of a linear, a logarithmic and an exponential curve through the
last samples.
"""

from __future__ import annotations

import numpy as np

from foretide.model import Array, Forecast
from foretide.series import filled


class BestCurve:
    """Three regressions on time over the last ``last`` windows; the one of least error is continued
    (DABS-Storm, section 4.1).

    With t = 1, 2, ..., n: ``a + b*t``, ``a + b*ln t``, and ``exp(a + b*t)`` fitted to the logarithm
    of the rate, which needs every rate > 0. Squared errors are compared in events/s. With fewer
    than three windows there is nothing to fit: the last one is repeated. A curve is held within 0
    and ``limit`` times the highest rate it was fitted to, because an exponential is unbounded.

    >>> np.round(BestCurve().forecast(np.array([1.0, 2.0, 4.0, 8.0]), horizon=2).mean, 6)
    array([16., 32.])
    """

    def __init__(self, last: int = 20, limit: float = 10.0) -> None:
        self.last = last
        self.limit = limit

    def fit(self, series: Array) -> None:
        """No training: the curves are fitted at every forecast."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        rates = filled(recent[-self.last :])
        n = len(rates)
        if n < 3:
            return Forecast.of(np.full(horizon, rates[-1]))
        at = np.arange(1.0, n + horizon + 1)
        curves = [line(at, at[:n], rates), line(np.log(at), np.log(at[:n]), rates)]
        if rates.min() > 0:
            curves.append(np.exp(np.minimum(line(at, at[:n], np.log(rates)), 700.0)))
        errors = [float(np.sum((curve[:n] - rates) ** 2)) for curve in curves]
        best = curves[int(np.argmin(errors))][n:]
        return Forecast.of(np.clip(best, 0.0, self.limit * rates.max()))


def line(at: Array, x: Array, y: Array) -> Array:
    """The least-squares line through (x, y), evaluated at ``at``."""
    slope = ((x - x.mean()) @ (y - y.mean())) / ((x - x.mean()) @ (x - x.mean()))
    return np.asarray(y.mean() + slope * (at - x.mean()))
