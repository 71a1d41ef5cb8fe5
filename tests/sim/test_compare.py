from dataclasses import replace

import numpy as np
import pytest
from runs import FollowingEnvironment

from foretide.apps import APPS, App, app
from foretide.autoscaler import Beat
from foretide.errors import InvalidConfig
from foretide.figures.metrics import figures
from foretide.figures.summary import summarize
from foretide.load import Load, load
from foretide.model import Prices
from foretide.sim.compare import Scenario, compare, engine_named, simulate
from foretide.systems import system

STEPS = Load("steps", np.repeat([20.0, 90.0, 20.0], 100))
CASE = Scenario(app("chain"), STEPS, window_s=10.0)


def test_the_true_need_follows_from_load_visits_and_service_times() -> None:
    case = Scenario(app("loop-back"), STEPS, window_s=100.0)  # 1.25 visits each, 0.1 s and 1/15 s
    assert {n: v.tolist() for n, v in case.needs().items()} == {
        "first": [3, 12, 3],
        "second": [2, 8, 2],
    }
    assert case.start() == {"first": 3, "second": 2}


def test_every_system_meets_the_same_load_and_the_same_optimum() -> None:
    reports: list[tuple[str, int, int]] = []
    names = ["srea", "static", "clairvoyant"]
    comparison = compare(
        CASE,
        [system(n) for n in names],
        lambda *news: reports.append(news),
        processes=1,
        new_environment=FollowingEnvironment,
    )
    assert [r.system for r in comparison.runs] == names
    assert len({r.optimum_cost for r in comparison.runs}) == 1
    by_name = {r.system: r.figures for r in comparison.runs}
    assert by_name["clairvoyant"].cost_ratio == pytest.approx(1.0)
    assert (by_name["static"].adaptations, by_name["clairvoyant"].replica_mape) == (1, 0.0)
    assert reports[-1] == ("clairvoyant", 30, 30)


def test_json_has_the_keys_of_the_contract() -> None:
    comparison = compare(CASE, [system("srea")], new_environment=FollowingEnvironment).as_dict()
    assert list(comparison) == [
        "app",
        "load",
        "window_s",
        "lead_s",
        "warm_up_s",
        "share",
        "optimum_cost",
        "target_optimum_cost",
        "systems",
    ]
    assert (comparison["app"], comparison["load"], comparison["window_s"]) == (
        "chain",
        "steps",
        10.0,
    )
    assert len(comparison["systems"][0]) == 20


def test_a_system_that_observes_more_often_is_judged_by_the_same_windows() -> None:
    published = system("pa-sps").cadence
    assert (published.steps_per_window(10.0), published.steps_per_window(30.0)) == (10, 30)
    assert published.fitted(1.0) == Beat(horizon=30, plan_every=30, forecast_every=30)
    assert system("srea").cadence.steps_per_window(0.5) == 1

    def fine(case: Scenario, system_: object) -> FollowingEnvironment:
        return FollowingEnvironment(Scenario(case.app, case.load, 1.0), system("srea"))

    record = simulate(
        CASE, system("pa-sps", forecaster="basic", forecaster_constants={}), new_environment=fine
    )
    assert [s.window_s for s in record.snapshots] == [10.0] * 30
    assert record.offered().sum() == pytest.approx(STEPS.total)
    assert figures(record).input_mape is not None


def test_a_system_that_cannot_plan_here_is_left_out_with_its_reason() -> None:
    comparison = compare(
        CASE,
        [system("fugu-local"), system("static")],
        processes=1,
        new_environment=FollowingEnvironment,
    )
    assert [r.system for r in comparison.runs] == ["static"]
    assert "never planned" in comparison.left_out["fugu-local"]


def test_impossible_cases_are_sentences() -> None:
    with pytest.raises(InvalidConfig, match="lasts 300 s, less than one window of 400 s"):
        Scenario(app("chain"), STEPS, 400.0)
    with pytest.raises(InvalidConfig, match="did you mean 'events'"):
        engine_named("event")
    with pytest.raises(InvalidConfig, match="--lead -1: give 0 seconds or more"):
        replace(CASE, lead_s=-1.0)
    with pytest.raises(InvalidConfig, match="--cores 0: an executor has 1 core or more"):
        replace(CASE, cores=0)
    with pytest.raises(InvalidConfig, match="--warm-up 295: load 'steps' lasts 300 s; leave"):
        replace(CASE, warm_up_s=295.0)


@pytest.mark.parametrize("mode", ["events", "fluid"])
def test_figures_after_a_warm_up_are_those_of_the_rest_alone(mode: str) -> None:
    """The rise comes in the warm-up: what was late then is not counted, what it left idle is."""
    whole = Scenario(app("chain"), STEPS, window_s=10.0, engine=engine_named(mode))
    warmed = replace(whole, warm_up_s=208.0)
    assert warmed.measured.windows == 10
    found = simulate(warmed, system("srea"))
    assert [s.at for s in found.snapshots] == [200.0 + 10.0 * i for i in range(1, 11)]
    assert found.start is not None
    assert found.start["first"] > warmed.measured.start()["first"]
    rest, all_of_it = figures(found), figures(simulate(whole, system("srea")))
    assert rest.replica_seconds is not None
    assert all_of_it.replica_seconds is not None
    assert rest.replica_seconds < 0.3 * all_of_it.replica_seconds
    assert (rest.latency_p99_ms or 0.0) < (all_of_it.latency_p99_ms or 0.0)
    assert warmed.conditions.warm_up_s == 200.0
    assert warmed.conditions.duration_s == 100.0
    assert warmed.target_cost() == warmed.measured.target_cost()


RISE = Load("rise", np.repeat([20.0, 90.0, 20.0], 100), interval_s=1.0)


@pytest.mark.parametrize("lead_s", [0.0, 10.0, 25.0])
def test_the_clairvoyant_covers_the_need_whatever_the_lead_time_is(lead_s: float) -> None:
    case = Scenario(app("chain"), RISE, 5.0, engine="fluid", lead_s=lead_s)
    record = simulate(case, system("clairvoyant"))
    assert {s.lead_s for s in record.snapshots} == {lead_s}
    for name, need in record.needs.items():
        assert (record.replicas(name) >= need).all()
    reactive = simulate(case, system("srea"))
    late = sum(int((reactive.replicas(n) < v).sum()) for n, v in reactive.needs.items())
    assert late > 0, "a rule that waits for the load is short while its replicas come"


def test_executors_take_the_lead_time_and_bring_slots() -> None:
    case = Scenario(app("chain"), RISE, 5.0, engine="fluid", lead_s=20.0, cores=4)
    record = simulate(case, system("srea"))
    slots = [s.slots for s in record.snapshots]
    assert all(s is not None and s % 4 == 0 for s in slots)
    for snapshot in record.snapshots:
        assert snapshot.lead_s == 20.0
        assert sum(x.replicas for x in snapshot.samples.values()) <= max(snapshot.slots or 0, 3)


def test_long_loads_go_to_the_fluid_engine() -> None:
    assert CASE.mode == "events"
    assert Scenario(app("twitter-linear"), load("stable:days=60"), 30.0).mode == "fluid"
    assert Scenario(app("chain"), STEPS, 10.0, engine="fluid").mode == "fluid"


@pytest.mark.slow
def test_side_by_side_gives_what_one_after_the_other_gives() -> None:
    systems = [system("srea"), system("static")]
    reports: set[str] = set()
    together = compare(CASE, systems, lambda name, done, total: reports.add(name), processes=2)
    apart = compare(CASE, systems, processes=1)
    assert together.as_dict() == apart.as_dict()
    assert reports == {"srea", "static"}


@pytest.mark.slow
def test_workers_end_when_nobody_listens_to_their_news() -> None:
    """News of 600,000 bytes, ten times what a pipe holds: a worker that could not send them would
    never end.
    """
    systems = [replace(system("static"), name=letter * 10_000) for letter in "ab"]
    assert [r.system[0] for r in compare(CASE, systems, processes=2).runs] == ["a", "b"]


def test_planners_weigh_the_prices_of_the_case() -> None:
    dear = Prices(up=1e9, down=1e9)
    case = Scenario(app("chain"), STEPS, 10.0, prices=dear)
    comparison = compare(case, [system("clairvoyant")], new_environment=FollowingEnvironment).runs[
        0
    ]
    assert comparison.figures.cost_ratio == pytest.approx(1.0)
    assert comparison.figures.adaptations == 1  # once up for the hump, never down


@pytest.mark.slow
@pytest.mark.parametrize("a", APPS.values(), ids=lambda a: a.name)
def test_every_app_runs_in_the_simulator_and_every_figure_is_measured(a: App) -> None:
    short = load(a.load).first(10 * a.window_s).scaled(0.2)
    record = simulate(Scenario(a, short, a.window_s), system("srea"))
    assert len(record.snapshots) == 10
    assert record.offered().sum() == pytest.approx(short.total, rel=0.1)
    unknown = {k for k, v in figures(record).as_dict().items() if v is None}
    unknown -= {"target_cost_ratio"}  # only a comparison has the cheapest schedule for the target
    assert unknown == (
        set() if summarize(record).short is None else {"saved_cost", "saved_resources"}
    )


def test_a_lower_promise_is_cheaper_and_judged_by_its_own_share() -> None:
    """Noise around 60 events/s: what 80 % would not have paid for is late."""
    noise = Load("noise", np.random.default_rng(3).gamma(4.0, 75.0, 600), interval_s=5.0)
    case = Scenario(
        replace(app("chain"), target_latency_s=5.0), noise, 5.0, engine="fluid", lead_s=10.0
    )
    low, high = (
        compare(replace(case, share=share), [system("foretide")], processes=1).runs[0]
        for share in (0.8, 0.995)
    )
    assert (low.share, high.share) == (0.8, 0.995)
    assert low.figures.cost is not None
    assert high.figures.cost is not None
    assert low.figures.cost < 0.97 * high.figures.cost
    assert 0.8 <= (low.figures.slo_share or 0.0) < (high.figures.slo_share or 0.0)
