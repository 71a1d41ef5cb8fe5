"""'auto' follows the best of its members, switches when another becomes the best, and needs only
the default install.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from foretide.forecast import FORECASTERS
from foretide.forecast.auto import MEMBERS, Auto
from foretide.forecast.evaluate import evaluate, stride
from foretide.load import read_csv
from foretide.model import Array
from foretide.parts import Forecaster

TRACES = Path(os.environ.get("FORETIDE_TRACES", Path(__file__).parents[3] / "shared" / "traces"))


def mae(auto: Auto, series: Array, start: int, end: int) -> float:
    return float(
        np.mean(
            [
                abs(auto.forecast(series[max(0, t - 100) : t], 1).mean[0] - series[t])
                for t in range(start, end)
            ]
        )
    )


def test_it_moves_from_persistence_to_the_season_when_the_load_does() -> None:
    rng = np.random.default_rng(1)
    walk = 500 + np.cumsum(rng.normal(0, 5, 600))
    season = np.tile(rng.gamma(2.0, 200.0, 12), 50) + rng.normal(0, 5, 600)
    auto = Auto(members=("basic", "lr", "seasonal"), half_life=30)
    mae(auto, walk, 50, 600)
    assert (
        auto.weights(0, np.ones(3))[1] < 0.05
    )  # a line through the last 100 windows is late on a random walk
    joined = np.concatenate((walk[-100:], season))
    mae(auto, joined, 100, 500)
    assert auto.weights(0, np.ones(3))[2] > 0.95


@pytest.mark.slow
def test_members_learn_by_themselves_when_nobody_calls_fit() -> None:
    """Only 100 windows are ever shown at once, yet a season of 144 is found, since what was seen is
    remembered.
    """
    day = (
        200
        + 150 * np.sin(2 * np.pi * np.arange(144) / 144)
        + np.where(np.arange(144) == 70, 400, 0)
    )
    series = np.tile(day, 12) + np.random.default_rng(3).normal(0, 3, 144 * 12)
    auto = Auto()
    mae(auto, series, 1, 144 * 11)
    assert mae(auto, series, 144 * 11, 144 * 12) < 6


def test_before_any_truth_all_members_weigh_the_same() -> None:
    assert Auto().weights(0, np.array([1.0, np.nan, 1.0, np.nan, np.nan])).tolist() == [
        0.5,
        0,
        0.5,
        0,
        0,
    ]


def test_one_window_is_enough() -> None:
    assert Auto().forecast(np.array([7.0]), 3).mean == (7.0, 7.0, 7.0)


@pytest.mark.slow
def test_default_install_runs_it_without_jax_and_statsforecast() -> None:
    program = """
import sys
for name in ("jax", "statsforecast"):
    sys.modules[name] = None
import numpy as np
from foretide.errors import MissingExtra
from foretide.forecast import FORECASTERS
for name in ("basic", "lr", "fft", "ann", "rf", "regression", "auto"):
    FORECASTERS.build(name).forecast(np.arange(1.0, 80.0), 3)
for name, extra in (("arima", "stats"), ("bigru", "deep")):
    try:
        FORECASTERS.build(name)
    except MissingExtra as error:
        assert f"foretide[{extra}]" in str(error), error
    else:
        raise SystemExit(f"{name} was built without its extra")
"""
    subprocess.run(
        [sys.executable, "-c", program], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def built(name: str, seed: int) -> Forecaster:
    return FORECASTERS.build(name)


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [1, 6])
@pytest.mark.parametrize("trace", sorted(p.name for p in TRACES.glob("*.csv")) or ["none"])
def test_close_to_the_best_of_its_set_on_every_shared_trace(trace: str, horizon: int) -> None:
    if trace == "none":
        pytest.skip(f"the shared traces are not at {TRACES}; set FORETIDE_TRACES")
    series = read_csv(TRACES / trace).rates()
    every = stride(len(series), origins=4000)
    scores = {
        m: evaluate(m, partial(built, m), series, horizon, every=every)[0]
        for m in ("auto", *MEMBERS)
    }
    auto = scores.pop("auto")
    assert auto.wape is not None
    assert auto.coverage is not None
    assert auto.wape <= 1.05 * min(s.wape or 0.0 for s in scores.values())
    assert auto.wape <= (scores["basic"].wape or 0.0)
    assert 0.90 <= auto.coverage <= 0.99
