"""Micro-batches by hand."""

from dataclasses import replace

import numpy as np
import pytest
from networks import single

from foretide.apps import App, Service, Values
from foretide.load import Load
from foretide.model import Plan
from foretide.sim.environment import Simulation, SimulationSettings
from foretide.sim.events.batch import BatchCosts
from foretide.topology import Operator, Topology

COSTS = BatchCosts(trigger_s=2.0, overhead_s=0.5, task_s=0.1)


def environment(app: App, counts: list[float], **settings: object) -> Simulation:
    return Simulation(
        app,
        Load("by hand", np.array(counts)),
        SimulationSettings(mode="batch", batch=COSTS, window_s=10.0, **settings),
    )


def test_a_batch_lasts_its_overhead_and_its_slowest_task():
    """Four events at 0 s and three at 1 s, 0.2 s each on two tasks.

    Batch 1 starts at 0 s with four events: 0.5 + 0.1 + 2 * 0.2 = 1.0 s, done at 1.0. The events of
    1 s wait for the trigger at 2 s: two tasks hold 2 and 1 events, done at 2 + 0.5 + 0.1 + 0.4 =
    3.0 s.
    """
    w = environment(single(2, Service(0.2), arrivals="batch"), [4, 3] + [0] * 8)
    seen = w.read(10.0)
    assert sorted(w.latencies_ms()[0].tolist()) == pytest.approx([1000] * 4 + [2000] * 3)
    sample = seen.samples["a"]
    assert (sample.arrived, sample.processed, sample.backlog) == (7, 7, 0)
    assert sample.busy_s == pytest.approx(1.4)
    assert (sample.batches, sample.batch_s) == pytest.approx((2, 1.0))
    assert sorted(sample.replica_processed) == [3, 4]


def test_a_batch_that_overruns_is_followed_at_once():
    """Ten events of 0.5 s on one task last 0.6 + 5 s from 0 s; those that came meanwhile start at
    5.6 s, not at 6 s.
    """
    w = environment(single(1, Service(0.5), arrivals="batch"), [10, 1] + [0] * 18)
    w.read(5.5)
    assert w.read(7.0).samples["a"].processed == 11
    assert w.latencies_ms()[0].tolist() == pytest.approx([5600] * 10 + [5600 + 1100 - 1000])


def test_a_batch_whose_commit_ends_past_the_trigger_is_followed_at_once():
    """Thirteen events of 0.1 s on one task take 0.6 + 1.3 s from 0 s and are committed at 2.1 s.
    The event of 1 s starts then, not at 4 s: done at 2.1 + 0.7 s.
    """
    w = Simulation(
        single(1, Service(0.1), arrivals="batch"),
        Load("by hand", np.array([13, 1] + [0] * 8)),
        SimulationSettings(mode="batch", batch=replace(COSTS, commit_s=0.2), window_s=10.0),
    )
    w.read(10.0)
    assert w.latencies_ms()[0].tolist() == pytest.approx([1900] * 13 + [1800])


TWO = App(
    "two",
    "",
    "test",
    Topology((Operator("a"), Operator("b", inputs=("a",)))),
    {"a": Service(0.1), "b": Service(0.1)},
    values=Values(1),
)


def test_outputs_leave_when_the_batch_ends_and_new_replicas_serve_the_next_batch():
    w = environment(TWO, [4] + [0] * 9)
    w.apply(Plan({"b": 4}))
    # a: 0 + 0.6 + 0.4 = 1.0 s; b looks every 0.5 s, starts at 1.0 s and takes 0.6 + 0.1 s on four
    # tasks
    latency = w.read(10.0).latency
    assert latency is not None
    assert latency.mean_ms == pytest.approx(1700)


def test_an_operator_behind_an_edge_rests_after_a_start():
    """As above, and one event at 2 s: a is done with it at 2.7 s; b may start two triggers after
    1.0 s: done at 5.0 + 0.7 s.
    """
    costs = replace(COSTS, pause=2.0)
    w = Simulation(
        TWO,
        Load("by hand", np.array([4, 0, 1] + [0] * 7)),
        SimulationSettings(mode="batch", batch=costs, window_s=10.0),
    )
    w.apply(Plan({"b": 4}))
    w.read(10.0)
    assert sorted(w.latencies_ms()[0].tolist()) == pytest.approx([1700] * 4 + [3700])


def test_events_in_a_running_batch_are_backlog():
    w = environment(single(1, Service(0.5), arrivals="batch"), [10] + [0] * 9)
    assert [w.read(t).samples["a"].backlog for t in (1.0, 5.0, 6.0)] == [10, 10, 0]
