"""Cheaper versions of systems: what they give up, and that they still run."""

import numpy as np
import pytest

from foretide.apps import app
from foretide.forecast import FORECASTERS
from foretide.load import Load
from foretide.sim.compare import Scenario, simulate
from foretide.sim.fast import COSTLY, FORECASTS, NETWORKS, fast
from foretide.systems import SYSTEMS, system

WINDOWS, WINDOW_S = 20_000, 60.0


def test_the_methods_named_are_forecasters() -> None:
    assert set(FORECASTERS.names) >= COSTLY
    assert system("bgelasor").forecaster in NETWORKS


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_a_fast_system_measures_once_per_window_and_forecasts_no_more_often_than_its_limit(
    name: str,
) -> None:
    cheaper, sentence = fast(system(name), WINDOWS, WINDOW_S)
    assert cheaper.cadence.steps_per_window(WINDOW_S) == 1
    if cheaper.forecaster in COSTLY:
        assert WINDOWS / cheaper.cadence.fitted(WINDOW_S).forecast_every <= FORECASTS
    assert (cheaper == system(name)) is (sentence == "")
    assert (cheaper.planner, cheaper.forecaster) == (system(name).planner, system(name).forecaster)


def test_what_differs_is_a_sentence() -> None:
    assert fast(system("pa-sps"), WINDOWS, WINDOW_S)[1] == (
        "pa-sps measures once per window instead of 60 times and renews its forecasts every 20 "
        "windows"
    )
    assert fast(system("bgelasor"), WINDOWS, WINDOW_S)[1] == (
        "bgelasor renews its forecasts every 20 windows and trains every 4,000 windows on the last "
        "1,000"
    )


def test_a_mean_over_seconds_stays_one_over_about_as_many() -> None:
    cheaper, _ = fast(system("psps"), WINDOWS, 10.0)
    assert cheaper.forecaster_constants["span"] == 3
    assert fast(system("psps"), WINDOWS, WINDOW_S)[0].forecaster_constants["span"] == 1


def test_a_short_load_changes_nothing_but_the_measuring() -> None:
    assert fast(system("bgelasor"), 500, WINDOW_S) == (system("bgelasor"), "")


def test_a_fast_system_runs_and_plans_in_every_window() -> None:
    wave = Load("wave", 60 * (50 + 30 * np.sin(np.arange(100) / 8)), WINDOW_S)
    scenario = Scenario(app("chain"), wave, WINDOW_S, engine="fluid")
    cheaper, _ = fast(system("pa-sps"), WINDOWS, WINDOW_S)
    record = simulate(scenario, cheaper)
    planned = [d for d in record.decisions if d.plan is not None]
    assert len(planned) >= scenario.windows - 20, "ten windows to learn from, asked every twenty"
    horizons = [f.horizon for d in planned for f in d.forecasts.values()]
    assert (max(horizons), min(horizons)) == (20, 1), "a forecast serves twenty windows"
