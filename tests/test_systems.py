"""Systems as declarations: every one can be built, listed and changed from a settings file."""

from unittest.mock import Mock

import numpy as np
import pytest

from foretide.balance import GROUPINGS
from foretide.config import parse_settings
from foretide.errors import InvalidConfig
from foretide.forecast import FORECASTERS
from foretide.guards import GUARDS
from foretide.model import Prices
from foretide.plan import PLANNERS
from foretide.plan.cost_balance import CostBalance
from foretide.plan.drs import Drs
from foretide.systems import SYSTEMS
from foretide.topology import Operator, Topology


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_names_registered_parts_and_its_source(name):
    system = SYSTEMS[name]
    assert system.planner in PLANNERS
    assert system.forecaster in FORECASTERS
    assert system.grouping in GROUPINGS
    assert all(guard in GUARDS for guard in system.guards)
    assert system.summary
    assert system.source
    system.new_planner()
    system.new_guards()


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_live_loop_forecasts_from_its_first_window_on(name):
    forecast = SYSTEMS[name].acting_forecaster().forecast(np.array([5.0]), horizon=3)
    assert forecast.horizon == 3
    assert forecast.mean[0] == pytest.approx(5.0)


def test_a_forecasters_code_is_loaded_before_the_loop_begins(monkeypatch):
    """Seconds of imports in the first step made its window, and the first advice, late."""
    build = Mock(wraps=FORECASTERS.build)
    monkeypatch.setattr(FORECASTERS, "build", build)
    SYSTEMS["attach"].autoscaler(Topology((Operator("a"),)), None, None)
    assert [call.args for call in build.call_args_list] == [("levels",)]


def test_a_settings_file_combines_parts_freely():
    table = {
        "name": "bgelasor",
        "forecaster": "ann-lags",
        "planner": "drs",
        "planner_constants": {"t_max_s": 0.5, "t_min_s": 0.1, "foresight": True},
        "horizon": 5,
    }
    system = parse_settings({"system": table}).system.build()
    planner = system.new_planner()
    assert isinstance(planner, Drs)
    settings = planner.settings
    assert (settings.t_max_s, settings.foresight, system.cadence.horizon) == (0.5, True, 5)
    assert system.cadence.scope == "operators"


def test_a_settings_file_changes_any_published_constant():
    table = {
        "name": "bgelasor",
        "forecaster": "basic",
        "planner_constants": {"prices": {"up": 1.0}, "drain_s": 30.0},
    }
    planner = parse_settings({"system": table}).system.build().new_planner()
    assert isinstance(planner, CostBalance)
    assert (planner.prices, planner.drain_s) == (Prices(up=1.0), 30.0)


def test_a_wrong_constant_is_told_at_once():
    with pytest.raises(InvalidConfig, match="t_max_s"):
        parse_settings({"system": {"name": "drs", "planner_constants": {"t_max": 1.0}}})
