from dataclasses import replace

import numpy as np
import pytest

from foretide.apps import app
from foretide.errors import NotReady
from foretide.figures.metrics import figures
from foretide.history import History
from foretide.load import Load
from foretide.model import Sample, Snapshot
from foretide.plan.clairvoyant_target import ClairvoyantTarget, bound
from foretide.sim.compare import Scenario, compare, simulate
from foretide.systems import system
from foretide.topology import Operator, Topology

WAVE = Load("wave", 60 + 40 * np.sin(np.arange(300) / 20), interval_s=1.0)
CASE = Scenario(replace(app("chain"), target_latency_s=5.0), WAVE, 5.0, engine="fluid")


def test_its_schedule_costs_no_less_than_the_bound_and_is_late_by_chance_alone() -> None:
    """The schedule keeps 99 % of a fluid in time; events of 0.1 s also wait by chance."""
    least = CASE.target_cost()
    assert least is not None
    found = figures(simulate(CASE, system("clairvoyant-target")))
    assert found.slo_share is not None
    assert found.slo_share >= 0.95
    assert found.cost is not None
    assert least <= found.cost <= 1.35 * least


def test_every_system_is_held_against_the_bound() -> None:
    found = compare(CASE, [system("ds2"), system("clairvoyant")], processes=1)
    assert found.target_optimum_cost == CASE.target_cost()
    for run in found.runs:
        assert run.figures.cost is not None
        assert run.figures.target_cost_ratio == run.figures.cost / (found.target_optimum_cost or 1)
        assert run.figures.target_cost_ratio > 1.0


def test_a_stricter_promise_never_costs_less() -> None:
    costs = [replace(CASE, share=share).target_cost() or 0.0 for share in (0.9, 0.99, 0.999)]
    assert costs == sorted(costs)


def test_without_the_future_it_says_where_it_runs() -> None:
    history = History(Topology((Operator("a"),)))
    history.append(Snapshot(5.0, 5.0, {"a": Sample(1, 1, 0, 1)}))
    with pytest.raises(NotReady, match="simulator alone"):
        ClairvoyantTarget().plan(history.topology, history, {})
    future = replace(CASE.future(), spare_s=None)
    assert bound(future, CASE.prices, CASE.start(), {}) is None
