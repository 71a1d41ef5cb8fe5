"""Levels at several speeds, mixed by their errors at every step ahead, with an upper quantile.

Made for planning ahead of a lead time: every step ahead has its own mixture and its own quantile,
all from the windows it is shown, so that it works from the first window and forgets an old level as
fast as the fastest of its averages.
"""

from __future__ import annotations

import math

import numpy as np

from foretide.errors import InvalidConfig, NotReady
from foretide.model import Array, Forecast

SPEEDS = np.array([1.0, 0.6, 0.35, 0.2, 0.1, 0.05])
TRENDS = ((0, 2), (1, 3), (2, 4))
LAGS = (1 - SPEEDS) / SPEEDS


class Levels:
    """Fading averages of six speeds, and three of them with a damped trend.

    For a step h ahead each is scored by its absolute errors h windows later, over all windows
    shown, fading with a half-life of ``half_life``; the forecast mixes them with weights ``(min
    error / error) ** power``. With few windows the errors one step ahead stand in: m windows tell
    only m / h independent things of h steps. ``upper`` comes from the ``quantile`` of the errors at
    that step, as ratios or as differences, whichever is lower; until the windows tell enough it
    leans on the spread one step ahead, which grows with the square root of the step up to twice,
    and at first on ``prior``.

    >>> flat = Levels().forecast(np.full(50, 10.0), horizon=2)
    >>> [round(v, 6) for v in flat.mean]
    [10.0, 10.0]
    """

    def __init__(
        self,
        quantile: float = 0.98,
        half_life: float = 100.0,
        power: float = 8.0,
        damping: float = 0.9,
        prior: float = 0.3,
    ) -> None:
        if not 0 < quantile < 1:
            raise InvalidConfig(f"quantile {quantile}: need 0 < quantile < 1")
        self.quantile, self.half_life, self.power = quantile, half_life, power
        self.damping, self.prior = damping, prior

    def fit(self, series: Array) -> None:
        """It needs no training."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        values = np.asarray(recent, dtype=float)
        values = values[np.isfinite(values)]
        if not values.size:
            raise NotReady("no window was measured yet; this forecaster needs one")
        averages = faded(values)
        least = 0.1 * max(float(values[-50:].mean()), 1e-9)
        weights = 0.5 ** (np.arange(len(values))[::-1] / self.half_life)
        mean, upper = np.empty(horizon), np.empty(horizon)
        first: Array | None = None
        spread = 1.0 + self.prior
        for h in range(1, horizon + 1):
            known = max(0, len(values) - h)
            members = self._members(averages, h)
            truth, weight = values[h:], weights[h:]
            if known >= 2:
                error = (np.abs(truth - members[:, :known]) * weight).sum(axis=1) / weight.sum()
                error += 1e-9 * least
                first = error if first is None else first
                error = (known / h * error + 4.0 * first) / (known / h + 4.0)
                share = (error.min() / error) ** self.power
                mixed = share / share.sum() @ members
                seen = self._seen(truth, mixed, weight, least)
            else:
                mixed, seen = members.mean(axis=0), 1.0
            if h == 1:
                spread = (known * seen + 4.0 * (1.0 + self.prior)) / (known + 4.0)
                high = spread
            else:
                guess = max(
                    1.0 + max(spread - 1.0, 0.0) * math.sqrt(min(h, 4)), 1.0 + self.prior / 2, seen
                )
                high = (known / h * seen + 2.0 * guess) / (known / h + 2.0)
            mean[h - 1] = max(mixed[-1], 0.0)
            upper[h - 1] = high * max(mixed[-1], least)
        return Forecast.of(mean, upper)

    def _seen(self, truth: Array, mixed: Array, weight: Array, least: float) -> float:
        """The upper quantile over the forecast, from errors as ratios and as differences, whichever
        is lower: after a rise ratios are absurd, after a fall differences are.
        """
        known, level = len(truth), max(float(mixed[-1]), least)
        ratio = _quantile(truth / np.maximum(mixed[:known], least), weight, self.quantile)
        beyond = _quantile(truth - mixed[:known], weight, self.quantile)
        return min(ratio, 1.0 + beyond / level)

    def _members(self, averages: Array, h: int) -> Array:
        reach = self.damping * (1 - self.damping**h) / (1 - self.damping)
        trends = [
            np.maximum(averages[i] + (averages[i] - averages[j]) / (LAGS[j] - LAGS[i]) * reach, 0)
            for i, j in TRENDS
        ]
        return np.concatenate([averages, np.array(trends)])


def faded(values: Array) -> Array:
    """Fading averages at every window, one row per speed; early ones average what there is. The
    sums of the last 1, 2, 4, ... windows come one from another, for all windows at once.

    >>> faded(np.array([2.0, 4.0, 4.0]))[1].round(3)
    array([2.   , 3.429, 3.795])
    """
    keep = np.broadcast_to((1 - SPEEDS)[:, None], (len(SPEEDS), len(values)))
    sums, factor, span = SPEEDS[:, None] * values, keep[:, :1], 1
    while span < len(values):
        sums[:, span:] += factor * sums[:, :-span]
        factor, span = factor * factor, 2 * span
    return np.asarray(sums / (1 - np.multiply.accumulate(keep, axis=1)))


def _quantile(values: Array, weights: Array, share: float) -> float:
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    at = int(np.searchsorted(cumulated, share * cumulated[-1]))
    return float(values[order[min(at, len(order) - 1)]])
