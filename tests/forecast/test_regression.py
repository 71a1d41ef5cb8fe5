"""The best of three curves, on data that lies exactly on each of them, and against scipy where it
does not.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import linregress

from foretide.forecast.regression import BestCurve


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        (lambda t: 5 + 3 * t, (35.0, 38.0)),  # t = 10, 11
        (lambda t: 10 + 20 * np.log(t), (56.0517019, 57.9579055)),  # 10 + 20 ln 10, 10 + 20 ln 11
        (lambda t: 2 * np.exp(0.25 * t), (24.3649879, 31.2852637)),  # 2 e^2.5, 2 e^2.75
    ],
    ids=["linear", "logarithmic", "exponential"],
)
def test_golden_points_on_a_curve_are_continued(
    curve: object, expected: tuple[float, float]
) -> None:
    rates = curve(np.arange(1.0, 10.0))  # type: ignore[operator]
    assert BestCurve().forecast(rates, 2).mean == pytest.approx(expected)


def test_golden_noisy_points_against_scipy() -> None:
    rates = np.array([12.0, 15.0, 14.0, 19.0, 26.0, 31.0, 44.0, 52.0])
    t = np.arange(1.0, 9.0)
    candidates = []
    for x, y, back in ((t, rates, None), (np.log(t), rates, None), (t, np.log(rates), np.exp)):
        fit = linregress(x, y)
        ahead = fit.intercept + fit.slope * (np.log(9.0) if x is not t else 9.0)
        here = fit.intercept + fit.slope * x
        candidates.append(
            (
                ((back(here) if back else here) - rates) @ ((back(here) if back else here) - rates),
                back,
                ahead,
            )
        )
    _, back, ahead = min(candidates, key=lambda c: c[0])
    assert back is np.exp
    assert BestCurve().forecast(rates, 1).mean[0] == pytest.approx(np.exp(ahead))


def test_zeros_leave_the_exponential_out() -> None:
    assert BestCurve().forecast(np.array([0.0, 2.0, 4.0, 6.0]), 1).mean == pytest.approx((8.0,))
    assert BestCurve().forecast(np.zeros(10), 2).mean == (0.0, 0.0)


def test_too_few_points_repeat_the_last() -> None:
    assert BestCurve().forecast(np.array([4.0, 7.0]), 2).mean == (7.0, 7.0)


def test_an_exponential_is_held_within_ten_times_the_highest() -> None:
    assert max(BestCurve().forecast(np.exp(np.arange(20.0)), 30).mean) == pytest.approx(
        10 * np.exp(19)
    )


def test_only_the_last_windows_count() -> None:
    rates = np.concatenate((np.full(50, 999.0), np.arange(1.0, 21.0)))
    assert BestCurve(last=20).forecast(rates, 1).mean == pytest.approx((21.0,))
