"""How a plan becomes replicas, by hand."""

import numpy as np
import pytest

from foretide.apps import App, Service, Values
from foretide.errors import ActuationError, InvalidConfig, NotReady
from foretide.load import Load
from foretide.model import Plan
from foretide.sim.environment import Simulation
from foretide.sim.hosts import HostCosts
from foretide.sim.reconfigure import ExecutorStarts, Pool, Restart, within_slots
from foretide.topology import Operator, Topology

NAMES = ("a", "b")


def two(service_s: float = 0.1, **app: object) -> App:
    """Two operators in a row."""
    topology = Topology(
        (Operator("a", max_replicas=8), Operator("b", inputs=("a",), max_replicas=8))
    )
    return App(
        "two", "", "test", topology, {n: Service(service_s) for n in NAMES}, values=Values(1), **app
    )


def environment(counts: list[float], app: App | None = None, **settings: object) -> Simulation:
    return Simulation(app or two(), Load("by hand", np.array(counts)), window_s=1.0, **settings)


def replicas(w: Simulation, at: float) -> tuple[int, ...]:
    seen = w.read(at)
    return tuple(seen.samples[n].replicas for n in NAMES)


@pytest.mark.parametrize("mode", ["events", "batch", "fluid"])
def test_a_pool_is_active_at_once_or_after_its_delay(mode):
    w = environment([1] * 9, mode=mode, reconfiguration=Pool(activation_s=1.5))
    w.apply(Plan({"a": 3}))
    assert replicas(w, 1.0) == (1, 1)
    w.apply(Plan({"a": 3}))  # asked again: it comes no later
    assert replicas(w, 2.0) == (3, 1)
    w.apply(Plan({"a": 4}))
    w.apply(Plan({"a": 2}))  # fewer is at once, and what was on its way is called off
    assert replicas(w, 5.0) == (2, 1)


def test_a_restart_stops_the_whole_topology():
    w = environment([4] + [0] * 9, reconfiguration=Restart(pause_s=3.0))
    w.read(0.25)  # two events are done at a, the third is half-way
    w.apply(Plan({"b": 2}))
    stopped = w.read(3.0).samples
    assert (stopped["a"].processed, stopped["a"].busy_s, stopped["a"].backlog) == pytest.approx(
        (0, 0, 2)
    )
    after = w.read(4.0).samples
    assert (after["a"].processed, after["b"].processed, after["b"].replicas) == (2, 3, 2)
    assert after["a"].busy_s == pytest.approx(0.15)


def test_executors_come_after_their_start_and_slots_short_means_fewer_replicas():
    w = environment([1] * 9, reconfiguration=ExecutorStarts(cores=2, start_s=2.5))
    w.apply(Plan({"a": 4, "b": 2}))  # two slots run, six are wanted: two executors start
    assert replicas(w, 1.0) == (1, 1)
    w.apply(Plan({"a": 4, "b": 2}))
    assert replicas(w, 2.0) == (1, 1)
    assert replicas(w, 3.0) == (4, 2)
    w.apply(Plan({"a": 4, "b": 2}, executors=2))  # the plan itself says how many executors stay
    assert replicas(w, 4.0) == (3, 1)


def test_at_most_so_many_executors():
    w = environment([1] * 9, reconfiguration=ExecutorStarts(cores=1, start_s=0.0, most=4))
    w.apply(Plan({"a": 6, "b": 2}))
    assert replicas(w, 1.0) == (3, 1)


def test_dealing_out_slots_never_exceeds_a_wish():
    assert within_slots({"a": 1, "b": 1, "c": 5}, 5) == {"a": 1, "b": 1, "c": 3}


def test_replicas_beyond_an_operators_bounds_are_refused():
    with pytest.raises(ActuationError, match="operator 'a' takes 1 to 8 replicas, not 9"):
        environment([1]).apply(Plan({"a": 9}))
    with pytest.raises(ActuationError, match="unknown operator 'c'"):
        environment([1]).apply(Plan({"c": 1}))
    with pytest.raises(InvalidConfig, match="unknown grouping 'shufle'"):
        environment([1], grouping="shufle")


def test_a_window_that_has_not_begun_is_not_ready():
    w = environment([1, 1])
    w.read(1.0)
    with pytest.raises(NotReady):
        w.read(1.0)


def test_waiting_events_are_dealt_anew_when_replicas_change():
    """Eight events at one replica, 0.1 s each; four replicas from 0.1 s on finish the other seven
    by 0.3 s.
    """
    w = environment([8] + [0] * 3, two(0.1))
    w.read(0.1)
    w.apply(Plan({"a": 4}))
    assert w.read(0.3001).samples["a"].backlog == 0


@pytest.mark.parametrize("mode", ["events", "fluid"])
def test_an_overloaded_host_slows_its_replicas(mode):
    """Two operators that want a core each share one: each gets half; on two hosts both get all they
    want.
    """
    topology = Topology((Operator("a"), Operator("b")))
    busy = App(
        "busy",
        "",
        "test",
        topology,
        {n: Service(0.1) for n in NAMES},
        values=Values(1),
        hosts=2,
        arrivals="poisson",
    )
    load = Load("full", np.full(400, 19.0))
    processed = {}
    for first in (1, 2):
        w = Simulation(busy, load, mode=mode, window_s=400.0, hosts=HostCosts(first=first))
        seen = w.read(400.0)
        processed[first] = sum(s.processed for s in seen.samples.values())
        assert len(seen.hosts) == first
        assert max(h.utilization for h in seen.hosts or ()) == pytest.approx(1.0, abs=0.08)
    assert processed[1] / processed[2] == pytest.approx(10 / 19, rel=0.06)


@pytest.mark.parametrize("mode", ["events", "fluid"])
def test_a_placement_starts_hosts_moves_operators_and_releases_what_is_empty(mode):
    w = environment(
        [2] * 20,
        two(0.01, hosts=3),
        mode=mode,
        hosts=HostCosts(start_s=2.0, migration_s=1.0, first=1),
    )
    assert [h.name for h in w.read(1.0).hosts or ()] == ["host-1"]
    w.apply(Plan({"a": 1, "b": 1}, placement={"a": ("host-1",), "b": ("extra",)}))
    assert [h.name for h in w.read(2.0).hosts or ()] == ["host-1"]  # the new host is still starting
    moved = w.read(4.0)
    assert {h.name: set(h.loads) for h in moved.hosts or ()} == {"host-1": {"a"}, "extra": {"b"}}
    assert (
        moved.samples["b"].processed < moved.samples["a"].processed
    )  # b stood still while it moved
    w.apply(
        Plan({"a": 1, "b": 1}, placement={"a": ("extra",), "b": ("extra",)}, release=("host-1",))
    )
    assert [h.name for h in w.read(6.0).hosts or ()] == ["extra"]
    with pytest.raises(ActuationError, match="there are only 3"):
        w.apply(Plan({"a": 1}, placement={"a": ("x", "y", "z")}))


def test_a_released_host_that_is_still_used_leaves_no_room_for_another():
    w = environment([2] * 9, two(0.01, hosts=2), hosts=HostCosts(start_s=1.0, first=2))
    with pytest.raises(ActuationError, match="starts new beside 2 hosts, but there are only 2"):
        w.apply(Plan({}, placement={"a": ("new",)}, release=("host-2",)))  # b sits there
    w.apply(Plan({}, placement={"a": ("new",), "b": ("host-2",)}, release=("host-1",)))
    assert {h.name for h in w.read(2.0).hosts or ()} == {"host-2", "new"}
