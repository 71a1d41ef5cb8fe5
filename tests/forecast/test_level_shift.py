"""Upper quantiles when the level of the load shifts: how soon they hold again, and how wide they
are.
"""

from __future__ import annotations

import csv
from collections.abc import Callable

import numpy as np
import pytest
from networks import TRACES

from foretide.forecast import FORECASTERS
from foretide.forecast.basic import Basic
from foretide.forecast.conformal import Conformal
from foretide.forecast.evaluate import step_scores, walk
from foretide.forecast.level_shift import shifted
from foretide.forecast.smooth import Smooth
from foretide.model import Array
from foretide.parts import Forecaster

BEFORE, HORIZON, SEEDS = 350, 4, 40
Noise = Callable[[Array, np.random.Generator], Array]


def gamma(variation: float) -> Noise:
    shape = 1 / variation**2
    return lambda level, rng: level * rng.gamma(shape, 1 / shape, len(level))


def poisson(level: Array, rng: np.random.Generator) -> Array:
    return rng.poisson(level).astype(float)


def walked(
    first: float, second: float, noise: Noise, seed: int, inner: Callable[[], Forecaster] = Basic
) -> tuple[Array, Array]:
    """Whether each truth was covered, and upper / level, for 150 origins after the shift."""
    levels = np.repeat([first, second], [BEFORE, 150 + HORIZON])
    series = noise(levels, np.random.default_rng(seed))
    model, hits, ratios = Conformal(inner(), 0.95), [], []
    for t in range(20, BEFORE + 150):
        upper = model.forecast(series[max(0, t - 400) : t], HORIZON).upper
        if t >= BEFORE:
            assert upper is not None
            hits.append(series[t : t + HORIZON] <= upper)
            ratios.append(np.array(upper) / second)
    return np.array(hits), np.array(ratios)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "noise", "inner"),
    [
        (100.0, 1000.0, gamma(0.1), Basic),
        (1000.0, 100.0, gamma(0.1), Basic),
        (100.0, 1000.0, gamma(0.1), Smooth),
        (1000.0, 100.0, gamma(0.1), Smooth),
        (100.0, 1000.0, poisson, Basic),
        (1000.0, 100.0, poisson, Basic),
        (100.0, 200.0, gamma(0.1), Basic),
        (200.0, 100.0, gamma(0.1), Basic),
    ],
)
def test_coverage_is_back_within_50_windows_of_a_shift(
    first: float, second: float, noise: Noise, inner: Callable[[], Forecaster]
) -> None:
    hits = np.array([walked(first, second, noise, seed, inner)[0] for seed in range(SEEDS)])
    per_step = hits[:, 50:].mean(axis=(0, 1))
    assert ((per_step >= 0.93) & (per_step <= 0.97)).all(), per_step


def test_after_a_fall_the_bound_is_one_for_the_low_load() -> None:
    """Residuals of the high level, in events/s, would put it at several times the load."""
    ratios = np.array([walked(1000.0, 100.0, gamma(0.1), seed)[1] for seed in range(10)])
    assert np.median(ratios[:, 5:]) < 1.4
    assert ratios[:, 5:].mean() < 1.4


def test_after_a_rise_the_shift_itself_is_not_expected_again() -> None:
    ratios = np.array([walked(100.0, 1000.0, gamma(0.1), seed)[1] for seed in range(10)])
    assert ratios[:, 5:].mean() < 1.4


@pytest.mark.parametrize(
    ("series", "answer"),
    [
        ([100.0] * 30 + [200.0] * 3, True),
        ([100.0] * 30 + [10.0] * 3, True),
        ([100.0] * 30 + [np.nan, 200.0, 200.0, np.nan, 200.0], True),
        ([100.0] * 30 + [200.0] * 2 + [100.0], False),
        ([100.0] * 30 + [200.0] * 4, False),
        ([100.0] * 30 + [120.0] * 3, False),
        ([100.0] * 20 + [200.0] * 3, False),
        ([100.0 * 1.1**i for i in range(40)], False),
        ([60.0, 150.0] * 15 + [200.0] * 3, False),
    ],
)
def test_shifts_bursts_ramps_and_noise(series: list[float], answer: bool) -> None:
    assert shifted(np.array(series)) is answer


def test_steps_are_scored_one_by_one() -> None:
    series = np.random.default_rng(1).gamma(4.0, 25.0, 3000)
    steps = step_scores(walk(Conformal(Basic(), 0.95), series, 3))
    assert [s.step for s in steps] == [1, 2, 3]
    assert [s.coverage for s in steps] == pytest.approx([0.95] * 3, abs=0.03)
    exact = float(np.quantile(series, 0.95)) - float(series.mean())
    assert all(0 < s.pinball < exact for s in steps)


@pytest.mark.slow
@pytest.mark.skipif(not TRACES.is_dir(), reason=f"the recorded loads are not in {TRACES}")
@pytest.mark.parametrize(
    "name", ["nyc_taxi_30min", "nasa_http_jul95_1min", "stock_ticks_us_5s", "azure_llm_conv_1s"]
)
def test_coverage_holds_on_recorded_loads(name: str) -> None:
    with (TRACES / f"{name}.csv").open() as lines:
        series = np.array([float(row["rate"]) for row in csv.DictReader(lines)])[-6000:]
    steps = step_scores(walk(Conformal(FORECASTERS.build("basic"), 0.95), series, 6, lookback=400))
    assert [s.coverage for s in steps] == pytest.approx([0.95] * 6, abs=0.02)
