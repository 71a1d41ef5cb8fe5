"""A twin fitted to a pipeline with known costs finds them, and predicts windows it did not see."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foretide.apps import App, Service
from foretide.errors import InvalidConfig, NotReady
from foretide.journal import Journal, Run
from foretide.load import Load
from foretide.model import Decision, Plan, Sample, Snapshot
from foretide.sim.calibrate import COMMIT_S, calibrate, fitted, waiting_at_first
from foretide.sim.environment import Simulation
from foretide.sim.events.batch import BatchCosts
from foretide.topology import Operator, Topology

PIPELINE = App(
    "known",
    "three operators, one of them random",
    "test",
    Topology(
        (
            Operator("parse"),
            Operator("rate", inputs=("parse",)),
            Operator("store", inputs=("rate",)),
        )
    ),
    {"parse": Service(0.002), "rate": Service(0.01, "exponential"), "store": Service(0.001)},
    selectivity={("parse", "rate"): 0.7},
    arrivals="poisson",
)
COSTS = BatchCosts(
    2.0,
    task_s=0.0,
    overheads_s={"parse": 0.4, "rate": 0.9, "store": 0.25},
    commit_s=COMMIT_S,
)


def recorded(seed: int) -> list[Snapshot]:
    """Three minutes of a rising load; the random operator gets a second replica half-way and a
    third later.
    """
    load = Load("rising", np.linspace(40, 220, 180))
    environment = Simulation(PIPELINE, load, mode="batch", batch=COSTS, window_s=10.0, seed=seed)
    seen = []
    for i in range(18):
        environment.apply(Plan({"rate": 1 + (i >= 8) + (i >= 14)}))
        seen.append(environment.read(10.0 * (i + 1)))
    return seen


def mean_latency_ms(snapshots: list[Snapshot]) -> float:
    left = [s.latency for s in snapshots if s.latency]
    return sum(x.mean_ms * x.count for x in left) / sum(x.count for x in left)


def test_known_parameters_are_found_again():
    twins = [fitted(PIPELINE.topology, recorded(seed), trigger_s=2.0) for seed in range(5)]
    for name, service in PIPELINE.service.items():
        for twin in twins:
            assert twin.app.service[name].mean_s == pytest.approx(service.mean_s, rel=0.02)
            assert twin.app.service[name].law == service.law
            assert twin.costs.overheads_s[name] == pytest.approx(COSTS.overheads_s[name], abs=0.01)
    assert twins[0].app.share("parse", "rate") == pytest.approx(0.7, rel=0.02)


def test_the_overhead_of_busy_replicas_is_found():
    """At 90 % busy a batch is ten times as long as its overhead."""
    app = App("busy", "", "test", Topology((Operator("score"),)), {"score": Service(0.03)})
    costs = BatchCosts(1.0, task_s=0.0, overheads_s={"score": 0.3})
    load = Load("flat", np.full(300, 60.0))
    environment = Simulation(app, load, mode="batch", batch=costs, window_s=5.0)
    environment.apply(Plan({"score": 2}))
    seen = [environment.read(5.0 * (i + 1)) for i in range(60)]
    twin = fitted(app.topology, seen[6:])
    assert twin.costs.overheads_s["score"] == pytest.approx(0.3, abs=0.05)


def test_windows_in_which_no_batch_ends_count_their_events():
    """Batches of 40 events of 0.1 s on one replica take 5 s, in two windows of 20 events each: 1 s
    is overhead.
    """
    topology = Topology((Operator("score"),))
    ends = Sample(20, 20, 40, 1, busy_s=2.0, batches=1.0, batch_s=5.0)
    none = replace(ends, batches=0.0, batch_s=None)
    windows = [Snapshot(2.5 * i, 2.5, {"score": none if i % 2 else ends}) for i in range(11)]
    assert fitted(topology, windows).costs.overheads_s["score"] == pytest.approx(1.0)


def test_a_measured_overhead_is_not_estimated():
    """Two batches that drew long service times: what they took says nothing of their overhead."""
    topology = Topology((Operator("score"),))
    unlucky = Sample(20, 20, 0, 4, busy_s=2.0, batches=1.0, batch_s=2.4, scv_service=1.0)
    measured = replace(unlucky, fixed_s=0.3)
    costs = [
        fitted(topology, [Snapshot(5.0 * i, 5.0, {"score": s}) for i in range(4)]).costs
        for s in (unlucky, measured)
    ]
    assert costs[0].overheads_s["score"] > 1.0
    assert costs[1].overheads_s["score"] == pytest.approx(0.3)


def test_the_second_half_is_foretold_from_the_first(tmp_path):
    seen = recorded(4)
    twin = calibrate(journal_of(tmp_path / "run.jsonl", seen), trigger_s=2.0, until_s=90.0)
    assert mean_latency_ms(twin.replay(seen)[9:]) == pytest.approx(
        mean_latency_ms(seen[9:]), rel=0.1
    )


def test_events_that_come_evenly_stay_even():
    app = replace(PIPELINE, arrivals="even")
    environment = Simulation(
        app, Load("flat", np.full(60, 40.0)), mode="batch", batch=COSTS, window_s=10.0
    )
    seen = [environment.read(10.0 * (i + 1)) for i in range(6)]
    assert fitted(app.topology, seen, trigger_s=2.0).app.arrivals == "even"
    assert fitted(app.topology, recorded(4), trigger_s=2.0).app.arrivals == "poisson"


def test_an_operator_that_sends_every_event_one_way_splits():
    topology = Topology(
        (Operator("a"), Operator("left", inputs=("a",)), Operator("right", inputs=("a",)))
    )
    service = dict.fromkeys(topology.names, Service(0.01))
    shares = {("a", "left"): 0.6, ("a", "right"): 0.4}
    app = App("split", "", "test", topology, service, shares, splits=frozenset("a"))
    environment = Simulation(
        app, Load("flat", np.full(60, 40.0)), mode="batch", batch=COSTS, window_s=10.0
    )
    seen = [environment.read(10.0 * (i + 1)) for i in range(6)]
    twin = fitted(topology, seen, trigger_s=2.0).app
    assert twin.splits == {"a"}
    assert twin.share("a", "left") == pytest.approx(0.6, abs=0.05)


def journal_of(path: Path, snapshots: list[Snapshot]) -> Path:
    with Journal(path, Run("known", "static", PIPELINE.topology, 10.0, 0.0)) as journal:
        for s in snapshots:
            journal.append(Decision(s.at, "observed", "advise", s))
    return path


def test_journals_without_a_fitting_window_say_so(tmp_path):
    seen = recorded(4)[:3]
    with pytest.raises(NotReady, match="holds no measured window"):
        calibrate(journal_of(tmp_path / "none.jsonl", []))
    whole = journal_of(tmp_path / "run.jsonl", seen)
    with pytest.raises(NotReady, match="no whole window after 100 s: it lasts 30 s"):
        calibrate(whole, after_s=100.0)
    with pytest.raises(NotReady, match="no whole window between 0 and 5 s: it lasts 30 s"):
        calibrate(whole, until_s=5.0)
    with pytest.raises(InvalidConfig, match="a trigger of nan s"):
        calibrate(whole, trigger_s=float("nan"))


def test_windows_of_an_earlier_life_with_other_operators_are_left_out(tmp_path):
    seen = recorded(4)[:3]
    earlier = replace(seen[0], samples={"other": seen[0].samples["parse"]})
    twin = calibrate(journal_of(tmp_path / "run.jsonl", [earlier, *seen[1:]]), trigger_s=2.0)
    assert twin.costs == fitted(PIPELINE.topology, seen[1:], trigger_s=2.0).costs


def test_windows_in_which_a_backlog_was_worked_off_are_enough():
    drained = [
        replace(s, samples={n: replace(x, arrived=0.0, offered=0.0) for n, x in s.samples.items()})
        for s in recorded(4)[:4]
    ]
    costs = fitted(PIPELINE.topology, drained, trigger_s=2.0).costs
    assert costs.overheads_s == pytest.approx(COSTS.overheads_s, abs=0.06)


def test_an_operator_that_did_nothing_is_an_error():
    quiet = Simulation(PIPELINE, Load("none", np.zeros(10)), mode="batch", window_s=10.0).read(10.0)
    with pytest.raises(NotReady, match="'parse' processed nothing"):
        fitted(PIPELINE.topology, [quiet])


def test_windows_without_batch_durations_are_an_error():
    events = Simulation(PIPELINE, Load("steady", np.full(10, 50.0)), window_s=10.0).read(10.0)
    with pytest.raises(NotReady, match="no batch durations of operator 'parse'"):
        fitted(PIPELINE.topology, [events])


def test_a_replay_begins_with_what_waited():
    environment = Simulation(
        PIPELINE, Load("flat", np.full(80, 40.0)), mode="batch", batch=COSTS, window_s=10.0
    )
    environment.start_with({"rate": (1500, 28.0)})
    seen = [environment.read(10.0 * (i + 1)) for i in range(8)]
    twin = fitted(PIPELINE.topology, seen, trigger_s=2.0)
    assert waiting_at_first(PIPELINE.topology, seen)["rate"][0] == pytest.approx(1500, abs=1)
    again = twin.replay(seen)
    drained = [s.samples["rate"].backlog for s in seen]
    assert drained[0] > 500
    a_batch = 450
    assert [s.samples["rate"].backlog for s in again] == pytest.approx(drained, abs=a_batch)
    with pytest.raises(InvalidConfig, match="only a simulation of micro-batches"):
        environment.start_with({})
