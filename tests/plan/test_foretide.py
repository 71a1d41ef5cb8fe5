"""The planner told as stories in the twin."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from foretide.apps import app
from foretide.apps.app import App
from foretide.errors import InvalidConfig
from foretide.figures.metrics import figures
from foretide.history import History
from foretide.load import Load
from foretide.model import Forecast, Latency, Sample, Snapshot
from foretide.plan.foretide import BEYOND, Foretide
from foretide.plan.promise import experience
from foretide.plan.promise.due import UNEVEN
from foretide.plan.promise.experience import ENOUGH
from foretide.plan.promise.rehearsal import Rules, rehearse
from foretide.sim.compare import Scenario, simulate
from foretide.systems import SYSTEMS, system
from foretide.topology import Operator, Topology

ONE = Topology((Operator("a", max_replicas=50),))
CHAIN: App = replace(app("chain"), target_latency_s=5.0)


def seen(
    arrived: float = 500.0, backlog: float = 0.0, replicas: int = 5, **more: object
) -> History:
    """Windows of 5 s; an event takes 40 ms."""
    history = History(ONE)
    sample = Sample(arrived, arrived, backlog, replicas, busy_s=arrived * 0.04, offered=arrived)
    for i in range(1, 4):
        history.append(Snapshot(5.0 * i, 5.0, {"a": sample}, **more))  # type: ignore[arg-type]
    return history


def steady(rate: float = 100.0, upper: float | None = None) -> dict[str, Forecast]:
    high = rate if upper is None else upper
    return {"a": Forecast((rate,) * 30, (high,) * 30)}


def test_a_steady_load_gets_the_least_that_keeps_up() -> None:
    plan = Foretide().plan(ONE, seen(), steady(100.0))
    assert plan.replicas["a"] == 5
    assert "99% within 5 s" in plan.reasons["a"].replace("99 %", "99%")


def test_it_plans_at_instants_of_our_time_without_a_lead_time() -> None:
    history = History(ONE)
    sample = Sample(500.0, 500.0, 0.0, 5, busy_s=20.0, offered=500.0)
    for i in range(1, 4):
        history.append(Snapshot(1_794_800_000.123 + 5.0 * i, 5.0, {"a": sample}))
    assert Foretide().plan(ONE, history, steady(100.0)).replicas["a"] == 5


def test_a_longer_lead_time_takes_more_of_the_uncertainty() -> None:
    asked = [
        Foretide().plan(ONE, seen(lead_s=lead), steady(100.0, 200.0)).replicas["a"]
        for lead in (0.0, 10.0, 60.0)
    ]
    assert asked[0] < asked[1] <= asked[2]
    reason = Foretide().plan(ONE, seen(lead_s=40.0), steady(100.0, 200.0)).reasons["a"]
    assert "in 40 s, when capacity asked for now would work" in reason


def test_events_that_wait_are_worked_off_within_the_target() -> None:
    plan = Foretide().plan(ONE, seen(backlog=1000.0), steady(100.0))
    assert plan.replicas["a"] * 5.0 / 0.04 >= 1000.0
    assert "1000 events wait" in plan.reasons["a"]
    quiet = Foretide().plan(ONE, seen(arrived=1.0, backlog=1000.0), steady(0.0))
    assert quiet.replicas["a"] > 1, "a queue is a reason to act when nothing new comes"


def test_a_queue_behind_a_slow_operator_is_planned_for_at_the_next_ones_too() -> None:
    """The first keeps 125 of 150 events/s; what it releases later is more than the second does."""
    topology = Topology((Operator("a", max_replicas=50), Operator("b", ("a",), max_replicas=50)))
    history = History(topology)
    first = Sample(750.0, 625.0, 500.0, 5, busy_s=25.0, offered=750.0, emitted={"b": 625.0})
    second = Sample(625.0, 625.0, 0.0, 6, busy_s=25.0)
    for i in range(1, 4):
        history.append(Snapshot(5.0 * i, 5.0, {"a": first, "b": second}, lead_s=30.0))
    replicas = Foretide().plan(topology, history, steady(150.0)).replicas
    assert replicas["b"] == replicas["a"] > 6


def test_where_capacity_comes_at_once_a_burst_is_met_when_it_is_due() -> None:
    """It neither follows a forecast that follows the burst, nor ends the queue before it is due."""
    plan = Foretide().plan(ONE, seen(backlog=600.0), steady(300.0))
    due = 600.0 + 300.0 * 5.0 * (1 - (1 - UNEVEN[1]) * 0.8 * (5 - 0.04) / 5)
    assert plan.replicas["a"] == math.ceil(due * 0.04 / 5) < 300.0 * 0.04
    later = Foretide().plan(ONE, seen(backlog=600.0, lead_s=10.0), steady(300.0))
    assert later.replicas["a"] >= 300.0 * 0.04


def test_a_lead_time_below_a_window_makes_no_queue() -> None:
    history = seen(900.0, replicas=8, lead_s=1.0)
    assert Foretide().plan(ONE, history, steady(180.0)).replicas["a"] == 8


def test_what_is_on_its_way_for_a_queue_is_neither_called_off_nor_asked_for_again() -> None:
    planner, history = Foretide(), seen(backlog=4000.0, lead_s=20.0)
    first = planner.plan(ONE, history, steady(100.0)).replicas["a"]
    history.append(replace(history.latest, at=history.now + 5.0))
    assert first > 20
    assert planner.plan(ONE, history, steady(100.0)).replicas["a"] == first


def test_it_never_asks_beyond_a_limit_and_says_which() -> None:
    topology = Topology((Operator("a", max_replicas=3),))
    plan = Foretide().plan(topology, seen(), steady(1000.0))
    assert plan.replicas["a"] == 3
    assert plan.reasons["a"].endswith("; limited to 3, its maximum")


def test_late_events_make_it_careful_and_its_caution_survives_a_restart() -> None:
    planner = Foretide()
    planner.level.value = 0.0
    late = seen(lead_s=10.0, latency=Latency(100, 1, 1, 1, 1, within=0.0))
    planner.plan(ONE, late, steady())
    assert planner.level.value > 0.4
    again = Foretide()
    again.restore(planner.state())
    assert again.level.value == planner.level.value


def test_a_broken_promise_takes_it_beyond_the_upper_quantile_but_not_without_end() -> None:
    late = seen(lead_s=10.0, latency=Latency(100, 1, 1, 1, 1, within=0.0))
    planner = Foretide()
    asked = [planner.plan(ONE, late, steady(100.0, 200.0)).replicas["a"] for _ in range(4)]
    assert asked[-1] > 100.0 * 2.0 * 0.04, "more than the upper quantile keeps busy"
    assert planner.level.value == BEYOND


def test_impossible_promises_are_sentences() -> None:
    for wrong in ({"target_s": 0.0}, {"share": 1.0}, {"slack": 0.0}):
        with pytest.raises(InvalidConfig):
            Foretide(**wrong)  # type: ignore[arg-type]


LOADS = {
    "shift": np.repeat([40.0, 120.0, 40.0], 60),
    "ramp": np.linspace(20.0, 150.0, 180),
    "on-off": np.where(np.arange(180) % 60 < 30, 100.0, 10.0),
    "quiet": np.concatenate([np.full(60, 80.0), np.zeros(60), np.full(60, 80.0)]),
}


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("lead_s", [0.0, 10.0])
def test_loads_it_was_never_tuned_on(load: str, lead_s: float) -> None:
    case = Scenario(CHAIN, Load(load, LOADS[load]), 5.0, engine="fluid", lead_s=lead_s)
    record = simulate(case, system("foretide"))
    assert not [d.error for d in record.decisions if d.outcome == "failed"]
    found = figures(record)
    assert found.slo_share is not None
    assert found.slo_share > (0.98 if lead_s == 0 else 0.75)
    assert found.cost_ratio is not None
    assert found.cost_ratio < 2.5
    assert math.isfinite(found.cost or math.nan)


def test_it_is_the_system_that_a_user_gets_without_choosing() -> None:
    assert next(iter(SYSTEMS)) == "foretide"
    promised = system("foretide").promised(3.0, 0.95)
    planner = promised.new_planner()
    assert isinstance(planner, Foretide)
    assert (planner.terms.target_s, planner.terms.share) == (3.0, 0.95)
    assert system("foretide").takes_target
    assert not system("srea").takes_target
    drs = system("drs").promised(2.0).planner_constants
    assert (drs["t_max_s"], drs["t_min_s"]) == (2.0, 0.9)
    assert system("srea").promised(2.0) == system("srea")


def test_rules_are_replayed_once_in_a_slow_window_and_a_backlog_is_met_in_the_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two time scales: the cost of rules every minute, rate and backlog in every step."""
    replayed: list[float] = []
    history, planner = History(ONE), Foretide()

    def counted(*case: Any) -> Rules:
        replayed.append(history.now)
        return rehearse(*case)

    monkeypatch.setattr(experience, "rehearse", counted)
    sample = Sample(500.0, 500.0, 0.0, 5, busy_s=20.0, offered=500.0)
    asked, priced = [], []
    for i in range(1, ENOUGH + 50):
        queue = 1000.0 if i == ENOUGH + 47 else 0.0
        history.append(Snapshot(5.0 * i, 5.0, {"a": replace(sample, backlog=queue)}, lead_s=0.0))
        plan = planner.plan(ONE, history, steady(100.0))
        asked.append(plan.replicas["a"])
        if plan.choices:
            priced.append(history.now)
            assert [c.cost for c in plan.choices] == pytest.approx([1.0] * len(plan.choices))
            assert 0.99 in [c.share for c in plan.choices]
            assert plan.reasons[""].startswith("99 % within 5 s would have cost 1.00 replicas")
    assert replayed == priced
    assert replayed[0] == 5.0 * ENOUGH
    assert set(np.diff(replayed)) == {60.0}
    assert 5.0 * (ENOUGH + 47) not in replayed
    assert asked[ENOUGH + 46] > asked[ENOUGH + 45] == 5


@pytest.mark.parametrize("repeats", [True, False])
def test_where_bursts_come_by_the_clock_the_reason_says_so(repeats: bool) -> None:
    history, planner, said = History(ONE), Foretide(), ""
    by_chance = np.random.default_rng(5).random(300) < 0.25
    for i in range(300):
        count = 2000.0 if (i % 40 < 10 if repeats else by_chance[i]) else 500.0
        sample = Sample(count, count, 0.0, 5, busy_s=count * 0.04, offered=count)
        history.append(Snapshot(5.0 * (i + 1), 5.0, {"a": sample}, lead_s=10.0))
        said = planner.plan(ONE, history, steady(count / 5.0)).reasons.get("", said)
    assert ("the load repeats every 200 s, which they follow" in said) == repeats


@pytest.mark.parametrize(("surprised", "stays"), [(False, False), (True, True)])
def test_idle_replicas_go_at_once_when_a_forecast_that_proved_right_sees_no_use_for_them(
    surprised: bool, stays: bool
) -> None:
    """A hump of four windows among ten at rest. The forecast knows it, or follows the load."""
    history, planner, replicas = History(ONE), Foretide(), 5
    loads = [20.0] * 10 + [100.0] * 4 + [20.0] * 30
    for i, load in enumerate(loads[:16]):
        count = 5.0 * load
        sample = Sample(count, count, 0.0, replicas, busy_s=count * 0.04, offered=count)
        history.append(Snapshot(5.0 * (i + 1), 5.0, {"a": sample}, lead_s=0.0))
        coming = (load,) * 16 if surprised else tuple(loads[i + 1 : i + 17])
        replicas = planner.plan(ONE, history, {"a": Forecast(coming, coming)}).replicas["a"]
    assert (replicas > 1) == stays


def test_in_micro_batches_a_burst_that_may_wait_is_spread_and_a_long_one_is_not() -> None:
    """An event takes 40 ms, batches come every second: 150 events/s keep six replicas busy."""
    asked = {}
    for windows in (0, 1, 8):
        history = History(ONE)
        batch = {"batches": 5.0, "batch_s": 0.5}
        sample = Sample(100.0, 100.0, 0.0, 1, busy_s=4.0, offered=100.0, **batch)
        for i in range(1, 4):
            history.append(Snapshot(5.0 * i, 5.0, {"a": sample}, lead_s=0.0))
        coming = (150.0,) * windows + (20.0,) * (12 - windows)
        plan = Foretide(15.0).plan(ONE, history, {"a": Forecast(coming, coming)})
        asked[windows] = plan.replicas["a"]
        spread = "150.0 may come, and what is beyond may wait" in plan.reasons["a"]
        assert spread == (windows == 1)
    assert asked[1] < 6 < asked[8]


def test_in_micro_batches_rules_ask_for_more_while_the_promise_is_broken() -> None:
    """The load is the same in every window, so that a replay sees nothing that could be late; what
    is late is what came in one second of a window.
    """
    asked = {}
    for late in (0.0, 0.05):
        history, planner = History(ONE), Foretide(5.0)
        for i in range(1, ENOUGH + 60):
            sample = Sample(
                500.0, 500.0, 0.0, 20, busy_s=20.0, offered=500.0, batches=5.0, batch_s=0.5
            )
            latency = Latency(500, 1, 1, 1, 1, within=round(500 * (1 - late)))
            at = 5.0 * i
            history.append(Snapshot(at, 5.0, {"a": sample}, latency=latency, lead_s=0.0))
            plan = planner.plan(ONE, history, steady(100.0))
        assert "as the rules ask" in plan.reasons["a"]
        asked[late] = plan.replicas["a"]
    assert asked[0.05] > asked[0.0]
