"""A stand-in forecaster until a slow learner is ready, so that a loop acts from its first window
on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretide.errors import NotReady
from foretide.forecast.basic import Basic
from foretide.model import Array, Forecast
from foretide.parts import Forecaster, Learner


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

    def state(self) -> dict[str, Any]:
        parts = {"inner": self.inner, "stand_in": self.stand_in}
        return {n: p.state() if isinstance(p, Learner) else {} for n, p in parts.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        for name, part in (("inner", self.inner), ("stand_in", self.stand_in)):
            if isinstance(part, Learner):
                part.restore(state[name])

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        try:
            return self.inner.forecast(recent, horizon)
        except NotReady:
            return self.stand_in.forecast(recent, horizon)
