"""An upper quantile for any forecaster: adaptive conformal inference on its own rolling residuals,
per step ahead, relative to the level of the load.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from foretide.forecast.level_shift import CONFIRM, shifted
from foretide.forecast.new_windows import PendingForecasts
from foretide.model import Array, Forecast
from foretide.parts import Forecaster, Learner

LEVEL_WINDOWS = 300


@dataclass(frozen=True, slots=True)
class _Bound:
    """What was forecast for one window, and the level that its residual is measured in."""

    mean: float
    upper: float | None
    level: float
    origin: int


class Conformal:
    """Wraps a forecaster and adds ``upper``, a rate that the truth stays below in a share
    ``quantile`` of the windows.

    For each step ahead s: ``upper_s = mean_s + level * Q_s``. Q_s is the ``(1 - alpha_s)``
    quantile, with the finite-sample rank ``ceil((n + 1) * (1 - alpha_s))``, of the last ``window``
    residuals ``(truth - mean) / level`` at that step. ``level`` is the mean rate of the present
    regime, over the last 300 windows at most. It changes slowly: measured against the forecast
    itself, a burst in the last window would raise the bound when the load is about to fall.

    After each truth ``alpha_s += rate * (alpha - missed)`` with ``alpha = 1 - quantile`` and
    ``missed`` 1 when the truth was above the upper bound, else 0 (Gibbs and Candes, Adaptive
    conformal inference under distribution shift, 2021, eq. 2): the share of misses tends to alpha
    even when the load drifts.

    A level shift (``level_shift.shifted``) starts a new regime. Forecasts of windows after the
    shift that were made before it was known are not scored: their errors are the shift itself and
    do not predict the next error. Of the older residuals the last ``1 / alpha`` are kept, the
    fewest that have such a quantile, and every new residual replaces one of them. Alpha starts
    again at its target then, and once more when they are gone.

    Past forecasts are scored when their truths arrive in ``recent``; while a step has fewer than
    ``least`` residuals there is no upper. Windows without a measurement score nothing.

    >>> from foretide.forecast.basic import Basic
    >>> level = Conformal(Basic(), quantile=0.5, least=2)
    >>> rates = np.array([10.0, 12.0, 10.0, 12.0, 10.0])
    >>> bounds = [level.forecast(rates[:t], horizon=1).upper for t in (1, 2, 3, 4, 5)]
    >>> bounds[:2], [round(b[0], 1) for b in bounds[2:]]
    ([None, None], [12.1, 14.1, 12.0])
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
        self._steps: dict[int, StepResiduals] = {}
        self._pending: PendingForecasts[_Bound] = PendingForecasts()
        self._shift_at = -LEVEL_WINDOWS  # the first window of the present regime
        self._regime_at = 0  # when it was known to have begun

    def fit(self, series: Array) -> None:
        """Fit the wrapped forecaster. Residuals come only from forecasts that were really made."""
        self.inner.fit(series)

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        before = self._pending.at
        settled = self._pending.settle(recent)
        self._find_shift(np.asarray(recent, dtype=float), self._pending.at - before)
        for step, truth, bound in settled:
            if bound.origin >= self._regime_at or bound.origin + step < self._shift_at:
                self._step(step).score(truth, bound)
        mean = self.inner.forecast(recent, horizon).mean
        level = _level(recent, min(LEVEL_WINDOWS, self._pending.at - self._shift_at))
        margins = [self._step(s).margin() for s in range(horizon)]
        upper = (
            None
            if any(m is None for m in margins)
            else np.add(mean, np.multiply(level, [m or 0.0 for m in margins]))
        )
        forecast = Forecast.of(mean, upper)
        bounds = forecast.upper or (None,) * horizon
        self._pending.add(
            [
                _Bound(m, u, level, self._pending.at)
                for m, u in zip(forecast.mean, bounds, strict=True)
            ]
        )
        return forecast

    def state(self) -> dict[str, Any]:
        return {
            "inner": self.inner.state() if isinstance(self.inner, Learner) else {},
            "steps": [[step, residuals.state()] for step, residuals in self._steps.items()],
            "pending": self._pending.state(lambda bounds: [astuple(b) for b in bounds]),
            "shift_at": self._shift_at,
            "regime_at": self._regime_at,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        if isinstance(self.inner, Learner):
            self.inner.restore(state["inner"])
        self._steps = {}
        for step, residuals in state["steps"]:
            self._step(int(step)).restore(residuals)
        self._pending.restore(state["pending"], _bounds)
        self._shift_at, self._regime_at = int(state["shift_at"]), int(state["regime_at"])

    def _find_shift(self, recent: Array, new: int) -> None:
        """Start a new regime when one of the ``new`` windows confirms a level shift."""
        for older in range(min(new, len(recent))):
            if shifted(recent[: len(recent) - older]):
                self._shift_at = self._pending.at - older - CONFIRM
                self._regime_at = self._pending.at
                for step, residuals in self._steps.items():
                    residuals.start_regime(self._shift_at - step)
                return

    def _step(self, step: int) -> StepResiduals:
        if step not in self._steps:
            self._steps[step] = StepResiduals(1 - self.quantile, self.window, self.rate, self.least)
        return self._steps[step]


def _bounds(rows: Sequence[tuple[float, float | None, float, int]]) -> list[_Bound]:
    return [_Bound(*row) for row in rows]


def _level(recent: Array, windows: int) -> float:
    """The mean rate of the last windows that were measured, at least a tenth of the mean of the
    last 300 and 1 event/s: after a silence the first error is not a multiple of nothing.
    """
    values = np.asarray(recent[-LEVEL_WINDOWS:], dtype=float)
    last = values[-windows:]
    means = [float(np.nanmean(part)) for part in (last, values) if np.isfinite(part).any()]
    return max(1.0, *(mean * share for mean, share in zip(means, (1.0, 0.1), strict=False)), 0.0)


class StepResiduals:
    """One step ahead: its last relative residuals, with the window of each, and its level alpha."""

    def __init__(self, target: float, window: int, rate: float, least: int) -> None:
        self.alpha = self.target = target
        self.rate = rate
        self.least = least
        self.residuals: deque[tuple[int, float]] = deque(maxlen=window)
        self._old = 0

    def state(self) -> dict[str, Any]:
        return {
            "alpha": self.alpha,
            "origins": np.array([origin for origin, _ in self.residuals], dtype=np.int64),
            "residuals": np.array([residual for _, residual in self.residuals], dtype=float),
            "old": self._old,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.alpha, self._old = float(state["alpha"]), int(state["old"])
        self.residuals.clear()
        self.residuals.extend(
            zip(state["origins"].tolist(), state["residuals"].tolist(), strict=True)
        )

    def score(self, truth: float, bound: _Bound) -> None:
        if bound.upper is not None:
            self.alpha += self.rate * (self.target - (truth > bound.upper))
        self.residuals.append((bound.origin, (truth - bound.mean) / bound.level))
        if self._old:
            self.residuals.popleft()
            self._old -= 1
            if not self._old:
                self.alpha = self.target

    def start_regime(self, last_origin: int) -> None:
        """Keep the last residuals of forecasts made before ``last_origin``, the fewest that have
        the quantile at all, until new ones replace them.
        """
        kept = max(self.least, math.ceil(1 / self.target))
        old = [r for r in self.residuals if r[0] < last_origin][-kept:]
        self.residuals.clear()
        self.residuals.extend(old)
        self._old = len(old)
        self.alpha = self.target

    def margin(self) -> float | None:
        n = len(self.residuals)
        if n < self.least:
            return None
        rank = int(np.clip(np.ceil((n + 1) * (1 - self.alpha)), 1, n)) - 1
        return float(np.partition(np.array([r for _, r in self.residuals]), rank)[rank])
