"""The harmonic forecast against a reference that sums sines and cosines one by one, without a
Fourier transform.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from foretide.errors import NotReady
from foretide.forecast.fft import Fourier


def reference(rates: list[float], strongest: int, horizon: int) -> list[float]:
    """Line by the normal equations, coefficients by their defining sums, in plain Python."""
    n = len(rates)
    t_mean, y_mean = (n - 1) / 2, sum(rates) / n
    slope = sum((t - t_mean) * (y - y_mean) for t, y in enumerate(rates)) / sum(
        (t - t_mean) ** 2 for t in range(n)
    )
    rest = [y - y_mean - slope * (t - t_mean) for t, y in enumerate(rates)]
    waves = []
    for k in range(n // 2 + 1):
        a = sum(y * math.cos(2 * math.pi * k * t / n) for t, y in enumerate(rest))
        b = sum(y * math.sin(2 * math.pi * k * t / n) for t, y in enumerate(rest))
        waves.append((math.hypot(a, b), k, a, b))
    kept = sorted(waves, key=lambda w: -w[0])[:strongest]
    ahead = []
    for t in range(n, n + horizon):
        value = y_mean + slope * (t - t_mean)
        for _, k, a, b in kept:
            share = (1 if k == 0 or 2 * k == n else 2) / n
            value += share * (
                a * math.cos(2 * math.pi * k * t / n) + b * math.sin(2 * math.pi * k * t / n)
            )
        ahead.append(value)
    return ahead


@pytest.mark.parametrize(("n", "strongest"), [(100, 10), (60, 3), (37, 5), (8, 10)])
def test_golden_against_sums_of_sines(n: int, strongest: int) -> None:
    rng = np.random.default_rng(n)
    rates = 500 + 2 * np.arange(n) + 90 * np.sin(np.arange(n) / 3) + rng.normal(0, 20, n)
    expected = reference(rates.tolist(), strongest, 7)
    assert Fourier(strongest=strongest).forecast(rates, 7).mean == pytest.approx(expected, rel=1e-9)


def test_golden_whole_waves_go_on_exactly() -> None:
    """Without a trend, whole waves in the window are continued to the last digit: 50 + 30 cos + 10
    sin at periods 20 and 10.
    """
    t = np.arange(106)
    rates = 50 + 30 * np.cos(2 * np.pi * t / 20) + 10 * np.sin(2 * np.pi * t / 10)
    assert Fourier(degree=0).forecast(rates[:100], 6).mean == pytest.approx(rates[100:].tolist())


def test_only_the_last_100_windows_count() -> None:
    rates = np.random.default_rng(3).gamma(4, 25, 150)
    assert Fourier().forecast(rates, 3) == Fourier().forecast(rates[-100:], 3)


def test_three_windows_are_too_few() -> None:
    with pytest.raises(NotReady, match="needs 4"):
        Fourier().forecast(np.ones(3), 1)
