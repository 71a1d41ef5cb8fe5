"""How long one forecast takes, and what following a set of models costs.

Every model that is installed learns from 3,000 windows of a noisy daily load; then the loop's call
is timed: 100 recent windows, six steps ahead, one more window each time. Ratios are to 'lr', a
straight line through 100 windows.

Run: python benchmarks/forecast.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from foretide.errors import MissingExtra
from foretide.forecast import FORECASTERS
from foretide.forecast.auto import MEMBERS
from foretide.forecast.basic import Basic
from foretide.forecast.conformal import Conformal
from foretide.model import Array
from foretide.parts import Forecaster

HORIZON = 6
LOOKBACK = 100
LEARNED = 3000


def daily(n: int) -> Array:
    noise = np.random.default_rng(0).normal(0, 40, n)
    return np.maximum(0.0, 500 + 300 * np.sin(2 * np.pi * np.arange(n) / 288) + noise)


def forecast_ms(
    forecaster: Forecaster, series: Array, least_s: float = 0.3, least_calls: int = 10
) -> float:
    """The median time of one call, over calls that advance one window each."""
    times: list[float] = []
    for at in range(LEARNED, len(series)):
        began = time.perf_counter()
        forecaster.forecast(series[at - LOOKBACK : at], HORIZON)
        times.append(time.perf_counter() - began)
        if sum(times) > least_s and len(times) >= least_calls:
            break
    return float(np.median(times) * 1e3)


def forecast_times() -> None:
    series = daily(LEARNED + 500)
    found: dict[str, float] = {}
    print(f"one forecast, {LOOKBACK} recent windows, {HORIZON} steps ahead (median)")
    for name in ("lr", *(n for n in FORECASTERS.names if n != "lr")):
        try:
            forecaster = FORECASTERS.build(name)
        except MissingExtra as error:
            print(f"  {name:14s} left out: {error}")
            continue
        began = time.perf_counter()
        forecaster.fit(series[:LEARNED])
        fit_s = time.perf_counter() - began
        forecaster.forecast(series[LEARNED - LOOKBACK : LEARNED], HORIZON)
        found[name] = forecast_ms(forecaster, series)
        print(
            f"  {name:14s} {found[name]:9.3f} ms, {found[name] / found['lr']:8.1f} x lr; learned "
            f"in {fit_s:.2f} s",
            flush=True,
        )
    print(f"auto / sum of its members: {found['auto'] / sum(found[m] for m in MEMBERS):.2f}")
    alone, wrapped = forecast_ms(Basic(), series), forecast_ms(Conformal(Basic()), series)
    print(f"upper quantile of six steps: {wrapped - alone:.3f} ms on top of the model's own time")


PARTS: tuple[Callable[[], None], ...] = (forecast_times,)


def main() -> None:
    for part in PARTS:
        part()


if __name__ == "__main__":
    main()
