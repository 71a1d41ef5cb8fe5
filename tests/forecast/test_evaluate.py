"""The walk-forward evaluation: the split, the figures worked out by hand, and a future that nobody
sees.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from foretide.errors import InvalidConfig, NotReady
from foretide.forecast import FORECASTERS
from foretide.forecast.basic import Basic
from foretide.forecast.evaluate import (
    Walk,
    evaluate,
    holdout_start,
    mean_score,
    score,
    stride,
    tuning_split,
    walk,
)
from foretide.model import Array, Forecast


class Spy:
    """Notes what it was shown."""

    def __init__(self) -> None:
        self.fitted = 0
        self.shown: list[int] = []

    def fit(self, series: Array) -> None:
        self.fitted = len(series)

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        self.shown.append(int(recent[-1]))
        return Forecast.of(np.full(horizon, recent[-1]))


def test_trained_on_two_thirds_tuned_on_a_sixth_tested_on_a_sixth() -> None:
    spy = Spy()
    walked = walk(spy, np.arange(600.0), horizon=2)
    assert spy.fitted == 475  # 500 less the warm-up
    assert tuning_split(500) == 400
    assert walked.origins == tuple(range(500, 599))
    assert spy.shown == list(range(474, 598))  # the newest window before each origin, nothing later


def test_every_second_origin() -> None:
    assert walk(Spy(), np.arange(600.0), horizon=1, every=2).origins == tuple(range(500, 600, 2))
    assert stride(60_000) == 5


def test_figures_by_hand() -> None:
    walked = Walk(
        before=np.array([1.0, 3.0, 2.0, np.nan, 2.0]),
        origins=(5, 6),
        truth=np.array([[4.0, 2.0], [6.0, np.nan]]),
        mean=np.array([[3.0, 4.0], [6.0, 9.0]]),
        upper=np.array([[5.0, 1.0], [np.nan, np.nan]]),
        fit_s=0.5,
        forecast_ms=2.0,
    )
    s = score("x", walked)
    assert s.rmse == pytest.approx((5 / 3) ** 0.5)
    assert s.mae == pytest.approx(1.0)
    assert s.wape == pytest.approx(3 / 12)
    assert s.mase == pytest.approx(1.0)  # the naive error before: (2 + 1 + 0) / 3
    assert s.coverage == pytest.approx(0.5)
    assert (s.fit_s, s.forecast_ms, s.origins) == (0.5, 2.0, 2)


def test_a_load_of_zeros_has_no_relative_figures() -> None:
    s, _ = evaluate("basic", lambda seed: Basic(), np.zeros(60), horizon=1)
    assert (s.rmse, s.wape, s.mase, s.coverage) == (0.0, None, None, 1.0)


SLOW = ("ann", "ann-tuned", "ann-lags", "rf", "rf-tuned", "rf-lags", "svr")
NAMES = [
    pytest.param(p.name, marks=[pytest.mark.slow] if p.name in SLOW else [])
    for p in FORECASTERS
    if p.extra is None
]


@pytest.mark.parametrize("name", NAMES)
def test_poisoned_future_changes_no_forecast(name: str) -> None:
    """Forecasts at an origin are the same whether the windows after it are real, NaN or absurd."""
    t = np.arange(480)
    series = 100 + 50 * np.sin(2 * np.pi * t / 24) + np.random.default_rng(7).normal(0, 5, len(t))
    cut, horizon, every = 440, 3, 20
    seen = (np.array(walk(FORECASTERS.build(name), series, horizon, every).origins) <= cut).sum()
    assert seen == 3
    results = []
    for poison in (series[cut:], np.nan, 1e9):
        poisoned = series.copy()
        poisoned[cut:] = poison
        results.append(walk(FORECASTERS.build(name), poisoned, horizon, every).mean[:seen])
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_times_come_from_the_clock_that_is_passed_in() -> None:
    ticks = itertools.count()
    walked = walk(Basic(), np.arange(60.0), horizon=1, clock=lambda: float(next(ticks)))
    assert (walked.fit_s, walked.forecast_ms) == (1.0, 1000.0)


def test_seeds_are_averaged() -> None:
    class Off:
        def __init__(self, by: float) -> None:
            self.by = by

        def fit(self, series: Array) -> None: ...

        def forecast(self, recent: Array, horizon: int) -> Forecast:
            return Forecast.of(np.full(horizon, recent[-1] + self.by))

    s, first = evaluate("off", Off, np.full(60, 10.0), horizon=1, seeds=3)
    assert s.mae == pytest.approx(1.0)
    assert s.seeds == 3
    assert first.mean[0, 0] == 10.0
    assert mean_score([s, s]).mae == s.mae


def test_a_model_that_is_never_ready_says_why() -> None:
    class Never(Spy):
        def forecast(self, recent: Array, horizon: int) -> Forecast:
            raise NotReady("it needs a week")

    with pytest.raises(NotReady, match="needs a week"):
        walk(Never(), np.arange(60.0), horizon=1)


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="too few"):
        walk(Basic(), np.arange(20.0), horizon=6)
    assert holdout_start(6) == 5
