"""An upper quantile for any forecaster: adaptive conformal inference on its own rolling residuals,
per step ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from foretide.forecast.new_windows import PendingForecasts
from foretide.model import Array, Forecast
from foretide.parts import Forecaster, Learner


class Conformal:
    """Wraps a forecaster and adds ``upper``, a rate that the truth stays below in a share
    ``quantile`` of the windows.

    For each step ahead s: ``upper_s = mean_s + Q_s``, where Q_s is the ``(1 - alpha_s)`` quantile,
    with the finite-sample rank ``ceil((n + 1) * (1 - alpha_s))``, of the last ``window`` residuals
    truth - mean at that step. After each truth ``alpha_s += rate * (alpha - missed)`` with ``alpha
    = 1 - quantile`` and ``missed`` 1 when the truth was above the upper that was given, else 0
    (Gibbs and Candes, Adaptive conformal inference under distribution shift, 2021, eq. 2): the
    share of misses tends to alpha even when the load drifts. Its past forecasts are scored as their
    truths arrive in ``recent``; while a step has fewer than ``least`` residuals there is no upper.
    Windows without a measurement score nothing.

    >>> from foretide.forecast.basic import Basic
    >>> level = Conformal(Basic(), quantile=0.5, least=2)
    >>> rates = np.array([10.0, 12.0, 10.0, 12.0, 10.0])
    >>> [level.forecast(rates[:t], horizon=1).upper for t in (1, 2, 3, 4, 5)]
    [None, None, (12.0,), (14.0,), (12.0,)]
    """

    def __init__(
        self,
        inner: Forecaster,
        quantile: float = 0.95,
        window: int = 300,
        rate: float = 0.02,
        least: int = 10,
    ) -> None:
        if not 0 < quantile < 1:
            raise ValueError(f"quantile is {quantile}: it must lie between 0 and 1")
        self.inner = inner
        self.quantile = quantile
        self.window = window
        self.rate = rate
        self.least = least
        self._steps: dict[int, _Step] = {}
        self._ledger: PendingForecasts[tuple[float, float | None]] = PendingForecasts()

    def fit(self, series: Array) -> None:
        """The wrapped forecaster learns; residuals are only ever collected from forecasts that were
        really made.
        """
        self.inner.fit(series)

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        for step, truth, (said, bound) in self._ledger.settle(recent):
            self._step(step).score(truth, said, bound)
        mean = self.inner.forecast(recent, horizon).mean
        margins = [self._step(s).margin() for s in range(horizon)]
        upper = (
            None if any(m is None for m in margins) else np.add(mean, [m or 0.0 for m in margins])
        )
        forecast = Forecast.of(mean, upper)
        self._ledger.add(list(zip(forecast.mean, forecast.upper or (None,) * horizon, strict=True)))
        return forecast

    def _step(self, step: int) -> _Step:
        if step not in self._steps:
            self._steps[step] = _Step(1 - self.quantile, self.window, self.rate, self.least)
        return self._steps[step]

    def state(self) -> dict[str, Any]:
        """Residuals and levels per step ahead, and what the wrapped forecaster has learned when it
        can tell.
        """
        steps = {
            str(s): {"alpha": step.alpha, "residuals": list(step.residuals)}
            for s, step in self._steps.items()
        }
        return {
            "steps": steps,
            "inner": self.inner.state() if isinstance(self.inner, Learner) else None,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        for s, saved in state["steps"].items():
            step = self._step(int(s))
            step.alpha = float(saved["alpha"])
            step.residuals.extend(float(r) for r in saved["residuals"])
        if state.get("inner") is not None and isinstance(self.inner, Learner):
            self.inner.restore(state["inner"])


class _Step:
    """One step ahead: its last residuals and its level alpha."""

    def __init__(self, target: float, window: int, rate: float, least: int) -> None:
        self.alpha = self.target = target
        self.rate = rate
        self.least = least
        self.residuals: deque[float] = deque(maxlen=window)

    def score(self, truth: float, mean: float, upper: float | None) -> None:
        self.residuals.append(float(truth - mean))
        if upper is not None:
            self.alpha += self.rate * (self.target - (truth > upper))

    def margin(self) -> float | None:
        n = len(self.residuals)
        if n < self.least:
            return None
        rank = int(np.clip(np.ceil((n + 1) * (1 - self.alpha)), 1, n)) - 1
        return float(np.partition(np.asarray(self.residuals), rank)[rank])
