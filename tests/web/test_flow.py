"""Need on the screen against the planners' own History and Flow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tweets_world import SERVICE_TIME_S, SHARE, STARTED_AT, TWEETS, World, load

from foretide.history import History
from foretide.model import Sample, Snapshot
from foretide.plan.flow import Flow
from foretide.plan.need import need
from foretide.topology import Operator, Topology
from foretide.web.flow import Demand

NO_LOOP = Topology(
    tuple(replace(o, inputs=tuple(p for p in o.inputs if p != "retry")) for o in TWEETS.operators)
)


@pytest.mark.parametrize("topology", [TWEETS, NO_LOOP], ids=["loop", "no loop"])
def test_need_is_what_flow_and_history_give(topology: Topology) -> None:
    world, history, demand = (
        World(topology, SERVICE_TIME_S, load, share=SHARE),
        History(topology),
        Demand(topology),
    )
    for i in range(1, 60):
        snapshot = world.read(STARTED_AT + i * 10)
        history.append(snapshot)
        samples = snapshot.samples
        demand.learn(
            np.array([samples[n].processed for n in topology.names]),
            np.array([samples[n].busy_s for n in topology.names], dtype=float),
            np.array([samples[p].emitted[c] for p, c in topology.edges]),
        )
        offered = np.array([(samples[n].offered or 0.0) / 10 for n in topology.names])
        found = demand.need(offered, np.zeros(len(offered)))
        rates = Flow.measured(topology, history).through({"parse": offered[0]})
        expected = [need(rates[n], history.service_time_s(n) or 0.0) for n in topology.names]
        assert found.tolist() == expected


def test_a_draining_queue_is_not_mistaken_for_load() -> None:
    """a worked off an old queue and sent 100 events/s on, but only 10/s came in from outside: b
    needs one replica, not ten.
    """
    demand = Demand(Topology((Operator("a"), Operator("b", inputs=("a",)))))
    demand.learn(np.array([1000.0, 1000.0]), np.array([10.0, 100.0]), np.array([1000.0]))
    assert demand.need(np.array([10.0, 0.0]), np.array([10.0, 100.0])).tolist() == [1, 1]


def test_a_loop_that_never_dies_out_is_judged_by_what_arrived() -> None:
    topology = Topology((Operator("a", inputs=("b",), source=True), Operator("b", inputs=("a",))))
    demand = Demand(topology)
    demand.learn(np.array([100.0, 100.0]), np.array([10.0, 10.0]), np.array([100.0, 100.0]))
    assert demand.need(np.array([10.0, 0.0]), np.array([50.0, 20.0])).tolist() == [5, 2]


def test_need_is_unknown_before_an_operator_worked() -> None:
    demand = Demand(Topology((Operator("a"),)))
    demand.learn(np.array([0.0]), np.array([np.nan]), np.array([]))
    assert np.isnan(demand.need(np.array([5.0]), np.array([5.0]))).all()


def test_samples_without_busy_time_leave_the_service_time_alone() -> None:
    sample = Sample(10, 10, 0, 1, busy_s=None)
    assert Snapshot(1.0, 1.0, {"a": sample}).samples["a"].busy_s is None
    demand = Demand(Topology((Operator("a"),)))
    demand.learn(np.array([10.0]), np.array([5.0]), np.array([]))
    demand.learn(np.array([10.0]), np.array([np.nan]), np.array([]))
    assert demand.need(np.array([4.0]), np.array([4.0])).tolist() == [2]
