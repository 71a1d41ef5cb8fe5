"""A stand-in forecaster until a slow learner is ready, so that a loop acts from its first window
on.
"""

from __future__ import annotations

from foretide.errors import NotReady
from foretide.forecast.basic import Basic
from foretide.model import Array, Forecast
from foretide.parts import Forecaster


class WithStandIn:
    """``inner``'s forecast, or that of ``stand_in`` (by default the last rate) while ``inner`` is
    not ready.

    >>> import numpy as np
    >>> class Never(Basic):
    ...     def forecast(self, recent: Array, horizon: int) -> Forecast:
    ...         raise NotReady("it learns tomorrow")
    >>> WithStandIn(Never()).forecast(np.array([3.0, 5.0]), horizon=1).mean
    (5.0,)
    """

    def __init__(self, inner: Forecaster, stand_in: Forecaster | None = None) -> None:
        self.inner = inner
        self.stand_in = stand_in or Basic()

    def fit(self, series: Array) -> None:
        self.stand_in.fit(series)
        self.inner.fit(series)

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        try:
            return self.inner.forecast(recent, horizon)
        except NotReady:
            return self.stand_in.forecast(recent, horizon)
