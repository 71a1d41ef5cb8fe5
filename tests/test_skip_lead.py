"""Published planners may plan for the moment when what they ask for works; by default they plan for
the next window, as published.
"""

from dataclasses import replace

import numpy as np
import pytest

from foretide.autoscaler import Autoscaler, Cadence
from foretide.config import parse_settings
from foretide.model import Array, Forecast, Plan, Sample, Snapshot
from foretide.parts import Planner
from foretide.systems import SYSTEMS, System
from foretide.topology import Operator, Topology

ONE = Topology((Operator("a", max_replicas=1000),))
WINDOW_S, LEAD_S = 5.0, 20.0
FORECASTING = ("bgelasor", "pa-sps", "psps", "dabs-storm", "spea")


class Ramp:
    """Expects 100 events/s more with every window."""

    def fit(self, series: Array) -> None:
        """Nothing to learn."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        return Forecast.of(100.0 * np.arange(1, horizon + 1), None)


class Steady:
    """Probe and Actuator of one operator at 100 events/s that needs 10 ms for each."""

    def read(self, now: float) -> Snapshot:
        events = 100.0 * WINDOW_S
        sample = Sample(events, events, 0.0, 1, busy_s=events * 0.01, offered=events)
        return Snapshot(now, WINDOW_S, {"a": sample}, lead_s=LEAD_S)

    def apply(self, plan: Plan) -> None:
        """Nothing changes."""


def asked(system: System) -> tuple[Plan, dict[str, Forecast]]:
    """The plan and the journal's forecasts of one step."""
    environment = Steady()
    planner: Planner = system.new_planner()
    loop = Autoscaler(ONE, environment, planner, environment, Ramp, cadence=system.cadence)
    every = system.cadence.fitted(WINDOW_S, LEAD_S).plan_every
    decisions = [loop.step(WINDOW_S * i) for i in range(1, every + 1)]
    plan = decisions[-1].proposed
    assert plan is not None, decisions[-1].error
    return plan, dict(decisions[-1].forecasts or {})


@pytest.mark.parametrize("name", FORECASTING)
def test_with_the_option_a_published_planner_plans_for_the_moment_after_the_lead(name: str) -> None:
    published = SYSTEMS[name]
    ahead = replace(published, cadence=replace(published.cadence, skip_lead=True))
    before, _ = asked(published)
    after, journal = asked(ahead)
    assert after.replicas["a"] > before.replicas["a"]
    assert journal["a"].mean[0] == 100.0, "the journal's forecast begins with the next window"


def test_the_planner_sees_the_window_in_which_its_plan_works() -> None:
    spea = replace(SYSTEMS["spea"], cadence=Cadence(skip_lead=True))
    plan, _ = asked(spea)
    assert plan.replicas["a"] == 5  # the fifth window: 500 events/s of 10 ms, four windows of lead


@pytest.mark.parametrize("name", FORECASTING)
def test_by_default_published_systems_stay_as_published(name: str) -> None:
    assert not SYSTEMS[name].cadence.skip_lead
    assert SYSTEMS[name].cadence.fitted(WINDOW_S, LEAD_S).skip == 0


def test_a_settings_file_sets_it() -> None:
    settings = parse_settings({"system": {"name": "pa-sps", "skip_lead": True}})
    built = settings.system.build()
    assert built.cadence.skip_lead
    assert built.cadence.fitted(WINDOW_S, LEAD_S).skip == 4
