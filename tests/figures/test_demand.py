"""Need as figures and dashboard compute it, against the planners' own History and Flow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tweets_world import SERVICE_TIME_S, SHARE, STARTED_AT, TWEETS, World, load

from foretide.figures.demand import ReplicaDemand, Routes, WindowArrays
from foretide.history import History
from foretide.model import Sample
from foretide.plan.flow import Flow
from foretide.plan.need import need
from foretide.topology import Operator, Topology

NO_LOOP = Topology(
    tuple(replace(o, inputs=tuple(p for p in o.inputs if p != "retry")) for o in TWEETS.operators)
)
ONE = Topology((Operator("a"),))


@pytest.mark.parametrize("topology", [TWEETS, NO_LOOP], ids=["loop", "no loop"])
def test_need_is_what_flow_and_history_give(topology: Topology) -> None:
    world, history, demand = (
        World(topology, SERVICE_TIME_S, load, share=SHARE),
        History(topology),
        ReplicaDemand(topology),
    )
    for i in range(1, 60):
        snapshot = world.read(STARTED_AT + i * 10)
        history.append(snapshot)
        needed = demand.add(WindowArrays.of(topology, snapshot.window_s, snapshot.samples))
        offered = snapshot.samples["parse"].offered
        assert offered is not None
        rates = Flow.measured(topology, history).through({"parse": offered / 10})
        expected = [need(rates[n], history.service_time_s(n) or 0.0) for n in topology.names]
        assert needed.tolist() == expected


def test_a_draining_queue_is_not_mistaken_for_load() -> None:
    """a worked off an old queue and sent 100 events/s on, but only 10/s came in from outside: b
    needs one replica, not ten.
    """
    chain = Topology((Operator("a"), Operator("b", inputs=("a",))))
    samples = {
        "a": Sample(100, 1000, 0, 1, {"b": 1000}, busy_s=10.0, offered=100),
        "b": Sample(1000, 1000, 0, 1, busy_s=100.0),
    }
    assert ReplicaDemand(chain).add(WindowArrays.of(chain, 10.0, samples)).tolist() == [1, 1]


def test_a_loop_that_never_dies_out_is_judged_by_what_arrived() -> None:
    loop = Topology((Operator("a", inputs=("b",), source=True), Operator("b", inputs=("a",))))
    samples = {
        "a": Sample(500, 100, 0, 1, {"b": 100}, busy_s=10.0, offered=100),
        "b": Sample(200, 100, 0, 1, {"a": 100}, busy_s=10.0),
    }
    assert ReplicaDemand(loop).add(WindowArrays.of(loop, 10.0, samples)).tolist() == [5, 2]
    routes = Routes(loop)
    assert np.isnan(routes.through(np.array([1.0, 0.0]), np.array([1.0, 1.0]))).all()
    assert np.isnan(routes.through(np.array([1.0, 0.0]), np.array([2.0, 2.0]))).all()


def test_need_is_unknown_until_a_service_time_was_measured() -> None:
    demand = ReplicaDemand(ONE)
    idle, blind = Sample(50, 0, 50, 1), Sample(50, 50, 0, 1)
    for sample in (idle, blind):
        assert np.isnan(demand.add(WindowArrays.of(ONE, 10.0, {"a": sample}))).all()
    timed = Sample(50, 50, 0, 1, busy_s=15.0)
    assert demand.add(WindowArrays.of(ONE, 10.0, {"a": timed})).tolist() == [2]


def test_a_window_without_busy_time_keeps_the_service_time_and_its_own_load() -> None:
    demand = ReplicaDemand(ONE)
    first = demand.add(WindowArrays.of(ONE, 10.0, {"a": Sample(40, 40, 0, 1, busy_s=20.0)}))
    blind = demand.add(WindowArrays.of(ONE, 10.0, {"a": Sample(80, 80, 0, 1, busy_s=None)}))
    assert (first.tolist(), blind.tolist()) == ([2], [4])


def test_only_the_last_ten_windows_with_work_count() -> None:
    demand = ReplicaDemand(ONE)
    needed = [
        demand.add(WindowArrays.of(ONE, 10.0, {"a": Sample(40, 40, 0, 1, busy_s=busy_s)}))[0]
        for busy_s in [20.0] * 10 + [60.0] * 10
    ]
    assert needed[9:] == [2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6]
