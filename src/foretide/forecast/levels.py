"""Levels at several speeds, mixed by their errors at every step ahead, with an upper quantile.

Made for planning ahead of a lead time: every step ahead has its own mixture and its own quantile,
all from the windows it is shown, so that it works from the first window and forgets an old level as
fast as the fastest of its averages.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from foretide.errors import InvalidConfig, NotReady
from foretide.jit import entry, inner
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
        numbers = np.array([self.quantile, self.half_life, self.power, self.damping, self.prior])
        mean, upper = _ahead(values, faded(values), horizon, numbers)
        return Forecast.of(mean, upper)


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


@inner
def _members(averages: Any, h: int, damping: float) -> Any:
    """What each average, and three of them with a damped trend, say of the window h ahead."""
    speeds, windows = averages.shape
    members = np.empty((speeds + len(TRENDS), windows))
    members[:speeds] = averages
    reach = damping * (1.0 - damping**h) / (1.0 - damping)
    for row in range(len(TRENDS)):
        i, j = TRENDS[row]
        slope = reach / (LAGS[j] - LAGS[i])
        for t in range(windows):
            trend = averages[i, t] + (averages[i, t] - averages[j, t]) * slope
            members[speeds + row, t] = max(trend, 0.0)
    return members


@inner
def _errors(values: Any, members: Any, weights: Any, h: int) -> Any:
    """Weighted mean absolute error of every member h windows later."""
    errors = np.zeros(members.shape[0])
    for i in range(members.shape[0]):
        for t in range(h, values.size):
            errors[i] += weights[t] * abs(values[t] - members[i, t - h])
    return errors / weights[h:].sum()


@inner
def _seen(values: Any, mixed: Any, weights: Any, h: int, quantile: float, least: float) -> Any:
    """The upper quantile over the forecast, from errors as ratios and as differences, whichever is
    lower: after a rise ratios are absurd, after a fall differences are.
    """
    known = values.size - h
    ratios, beyond = np.empty(known), np.empty(known)
    for t in range(known):
        ratios[t] = values[t + h] / max(mixed[t], least)
        beyond[t] = values[t + h] - mixed[t]
    ratio = _quantile(ratios, weights[h:], quantile)
    level = max(mixed[values.size - 1], least)
    return min(ratio, 1.0 + _quantile(beyond, weights[h:], quantile) / level)


@entry
def _ahead(values: Any, averages: Any, horizon: int, numbers: Any) -> Any:
    """Mean and upper quantile of every step ahead."""
    quantile, half_life, power, damping, prior = numbers
    windows = values.size
    least = 0.1 * max(values[-50:].mean(), 1e-9)
    weights = 0.5 ** ((windows - 1.0 - np.arange(windows)) / half_life)
    mean, upper = np.empty(horizon), np.empty(horizon)
    first, spread, high = np.zeros(averages.shape[0] + len(TRENDS)), 1.0 + prior, 1.0 + prior
    for h in range(1, horizon + 1):
        known = max(0, windows - h)
        members = _members(averages, h, damping)
        share = np.ones(members.shape[0])
        if known >= 2:
            error = _errors(values, members, weights, h) + 1e-9 * least
            if h == 1:
                first = error.copy()
            error = (known / h * error + 4.0 * first) / (known / h + 4.0)
            share = (error.min() / error) ** power
        share /= share.sum()
        mixed = np.zeros(windows)
        for i in range(members.shape[0]):
            mixed += share[i] * members[i]
        seen = _seen(values, mixed, weights, h, quantile, least) if known >= 2 else 1.0
        if h == 1:
            spread = high = (known * seen + 4.0 * (1.0 + prior)) / (known + 4.0)
        else:
            grown = 1.0 + max(spread - 1.0, 0.0) * math.sqrt(min(h, 4))
            guess = max(grown, 1.0 + prior / 2.0, seen)
            high = (known / h * seen + 2.0 * guess) / (known / h + 2.0)
        mean[h - 1] = max(mixed[-1], 0.0)
        upper[h - 1] = high * max(mixed[-1], least)
    return mean, upper


@inner
def _quantile(values: Any, weights: Any, share: float) -> Any:
    order = np.argsort(values)
    total, reached = share * weights.sum(), 0.0
    for at in order:
        reached += weights[at]
        if reached >= total:
            return values[at]
    return values[order[-1]]
