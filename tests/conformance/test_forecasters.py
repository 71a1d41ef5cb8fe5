"""Every registered forecaster on every load that once broke one: never NaN, never negative, an
error only as NotReady.

A forecaster whose optional dependencies are absent is skipped; those that need one, or that train
for long, are marked slow.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from foretide.errors import MissingExtra, NotReady
from foretide.forecast import FORECASTERS
from foretide.forecast.conformal import Conformal
from foretide.forecast.stand_in import WithStandIn
from foretide.forecast.state_file import decoded, encoded
from foretide.forecast.warmed import Warmed
from foretide.model import Array
from foretide.parts import Forecaster, Learner
from foretide.registry import Part

HORIZON = 8  # longer than the six steps that models learn at once


def noise(n: int, seed: int = 1) -> Array:
    t = np.arange(n)
    return np.maximum(
        0.0, 100 + 40 * np.sin(2 * np.pi * t / 24) + np.random.default_rng(seed).normal(0, 8, n)
    )


def gap() -> Array:
    series = noise(300)
    series[100:140] = np.nan
    series[-3:] = np.nan
    return series


def outlier() -> Array:
    series = noise(300)
    series[250] = 1e12
    return series


LOADS: dict[str, Callable[[], Array]] = {
    "noise": lambda: noise(300),
    "constant": lambda: np.full(300, 42.0),
    "zeros": lambda: np.zeros(300),
    "mostly zeros": lambda: np.where(np.arange(300) % 50 == 49, 30.0, 0.0),
    "tiny": lambda: noise(300) * 1e-9,
    "huge": lambda: noise(300) * 1e12,
    "steep": lambda: np.exp(np.linspace(0, 25, 300)),
    "falling to zero": lambda: np.linspace(100, 0, 300),
    "a gap, and a hole at the end": gap,
    "one huge outlier": outlier,
    "an outlier just now": lambda: np.append(noise(299), 1e12),
}


TRAINED = (
    "ann",
    "rf",
    "ann-tuned",
    "rf-tuned",
    "ann-lags",
    "rf-lags",
    "svr",
)  # scikit-learn trains for a good part of a second on each load
REGISTERED = [
    pytest.param(
        part, id=part.name, marks=[pytest.mark.slow] if part.extra or part.name in TRAINED else []
    )
    for part in FORECASTERS
]


SMALL_NETWORK = {"lookback": 16, "hidden": 8, "rounds": 1, "limit": 280}


def build(part: Part) -> Forecaster:
    """As a system builds it; networks small, with their stand-in before the first training."""
    try:
        return (
            WithStandIn(FORECASTERS.build(part.name, **SMALL_NETWORK))
            if part.extra == "deep"
            else FORECASTERS.build(part.name)
        )
    except MissingExtra as error:
        pytest.skip(str(error))


def check(forecaster: Forecaster, recent: Array) -> None:
    """Forecast of itself raises InvalidRecord when a step is NaN, infinite or negative."""
    forecast = forecaster.forecast(recent, HORIZON)
    assert forecast.horizon == HORIZON


@pytest.mark.parametrize("part", REGISTERED)
def test_every_load_fitted_and_not(part: Part) -> None:
    for name, load in LOADS.items():
        series = load()
        for fitted in (True, False):
            forecaster = build(part)
            if fitted:
                forecaster.fit(series[:280])
            try:
                check(forecaster, series[-100:])
                check(forecaster, series)
            except Exception as error:
                raise AssertionError(f"{part.name} on {name}, {fitted=}: {error}") from error


@pytest.mark.parametrize("part", REGISTERED)
def test_short_history_is_not_ready_or_answered(part: Part) -> None:
    for n in (0, 1, 2, 3, 5, 9, 12, 20, 31, 44):
        forecaster = build(part)
        forecaster.fit(noise(n))
        with suppress(NotReady):
            check(forecaster, noise(n))
    forecaster = build(part)
    check(forecaster, noise(100))


@pytest.mark.parametrize("part", REGISTERED)
def test_nothing_measured_is_not_ready(part: Part) -> None:
    forecaster = build(part)
    forecaster.fit(np.full(60, np.nan))
    with pytest.raises(NotReady):
        forecaster.forecast(np.full(60, np.nan), HORIZON)


@pytest.mark.parametrize("part", REGISTERED)
def test_a_million_points(part: Part) -> None:
    series = noise(1_000_000)
    forecaster = build(part)
    forecaster.fit(series)
    check(forecaster, series)


@pytest.mark.parametrize("part", REGISTERED)
def test_same_seed_same_forecast_and_the_input_is_left_alone(part: Part) -> None:
    series = noise(200)
    series.flags.writeable = False
    answers = []
    for _ in range(2):
        forecaster = build(part)
        forecaster.fit(series[:180])
        answers.append(forecaster.forecast(series, HORIZON))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("part", REGISTERED)
def test_in_the_loop_with_an_upper_quantile(part: Part) -> None:
    """Called every window, as the loop does, each forecast is finite and soon has an upper."""
    series = noise(90)
    series[70] = np.nan
    forecaster = Conformal(build(part), least=5)
    forecaster.fit(series[:60])
    uppers = [forecaster.forecast(series[max(0, t - 60) : t], 2).upper for t in range(60, 90)]
    assert uppers[-1] is not None
    assert all(np.isfinite(u).all() for u in uppers if u is not None)


def through_a_file(forecaster: Forecaster, fresh: Forecaster) -> Forecaster:
    """``fresh`` with what ``forecaster`` learned; one that learns nothing has nothing to keep."""
    if isinstance(forecaster, Learner):
        assert isinstance(fresh, Learner)
        fresh.restore(decoded(encoded(forecaster.state())))
    return fresh


@pytest.mark.parametrize("part", REGISTERED)
@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "wrapped"])
def test_what_it_learned_survives_a_file(part: Part, wrapped: bool) -> None:
    """A forecaster that is saved in the middle of a series and restored into a new one forecasts
    the rest of the series as if nothing had happened.
    """

    def made() -> Forecaster:
        alone = build(part)
        return Warmed(Conformal(alone, least=5), noise(150, seed=2)) if wrapped else alone

    series = noise(330)
    series[290] = np.nan
    first = made()
    if not wrapped:  # the wrapper lets it learn from its past
        first.fit(series[:280])
    for end in range(280, 300):
        first.forecast(series[end - 120 : end], HORIZON)
    again = through_a_file(first, made())
    for end in range(300, 330, 3):
        recent = series[end - 120 : end]
        assert again.forecast(recent, HORIZON) == first.forecast(recent, HORIZON)


@pytest.mark.parametrize("part", REGISTERED)
def test_what_it_learned_is_not_nothing(part: Part) -> None:
    """Without its state a new forecaster of a learning kind would forecast something else: so the
    test above can fail.
    """
    first, again = build(part), build(part)
    if not isinstance(first, Learner) or not isinstance(again, Learner):
        return
    assert decoded(encoded(first.state())).keys() == first.state().keys()
    first.fit(noise(280))
    assert encoded(first.state()) != encoded(again.state())
