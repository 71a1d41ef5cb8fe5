"""One suite that every registered planner passes, on a chain, a diamond with a split and a loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from foretide.autoscaler import Autoscaler, Cadence
from foretide.errors import NotReady
from foretide.figures.replay import replay
from foretide.forecast.basic import Basic
from foretide.history import History
from foretide.journal import Journal, Run, read
from foretide.model import Decision, Forecast, Host, Plan, Sample, Snapshot
from foretide.parts import Learner, Monotone, Planner
from foretide.plan import PLANNERS
from foretide.plan.flow import Flow
from foretide.plan.future import Future
from foretide.plan.need import need
from foretide.topology import Operator, Topology

WINDOW_S = 10.0
WINDOWS = 40
CHAIN = Topology((Operator("a"), Operator("b", ("a",)), Operator("c", ("b",))))
DIAMOND = Topology(
    (Operator("a"), Operator("b", ("a",)), Operator("c", ("a",)), Operator("d", ("b", "c")))
)
LOOP = Topology((Operator("a", ("b",), source=True), Operator("b", ("a",)), Operator("c", ("b",))))
SHARES = {
    ("a", "b"): 0.7,
    ("a", "c"): 0.3,
    ("b", "d"): 0.5,
    ("c", "d"): 1.0,
    ("b", "a"): 0.2,
    ("b", "c"): 0.8,
}
SERVICE = {"a": 0.02, "b": 0.03, "c": 0.05, "d": 0.01}
TOPOLOGIES = pytest.mark.parametrize(
    "topology", [CHAIN, DIAMOND, LOOP], ids=["chain", "diamond", "loop"]
)
EVERY = pytest.mark.parametrize("name", PLANNERS.names)


class StubEnvironment:
    """Probe and Actuator in one, with queues per operator and two hosts that share all replicas
    evenly.
    """

    def __init__(self, topology: Topology, load: list[float]) -> None:
        self.topology, self.load = topology, load
        self.flow = Flow(topology, {e: SHARES[e] for e in topology.edges})
        self.replicas = dict.fromkeys(topology.names, 1)
        self.backlog = dict.fromkeys(topology.names, 0.0)
        self.window = 0
        self.returning: dict[str, float] = {}

    def apply(self, plan: Plan) -> None:
        self.replicas.update(plan.replicas)

    def read(self, now: float) -> Snapshot:
        samples: dict[str, Sample] = {}
        done: dict[str, float] = {}
        for name in self.topology.order:
            outside = self.load[self.window] * WINDOW_S if name in self.topology.sources else None
            inside = sum(
                done.get(p, self.returning.get(p, 0.0)) * SHARES[(p, name)]
                for p in self.topology.predecessors(name)
            )
            arrived = (outside or 0.0) + inside
            waiting = self.backlog[name] + arrived
            done[name] = min(waiting, self.replicas[name] * WINDOW_S / SERVICE[name])
            self.backlog[name] = waiting - done[name]
            emitted = {c: done[name] * SHARES[(name, c)] for c in self.topology.successors(name)}
            samples[name] = Sample(
                arrived,
                done[name],
                self.backlog[name],
                self.replicas[name],
                emitted,
                done[name] * SERVICE[name],
                outside,
                batches=5,
                batch_s=0.1 + done[name] * SERVICE[name] / 5 / self.replicas[name],
            )
        self.returning = done
        self.window += 1
        used = {n: (s.busy_s or 0.0) / WINDOW_S / 2 for n, s in samples.items()}
        hosts = tuple(Host(f"host{i}", min(1.0, sum(used.values()) / 8), 8.0, used) for i in (1, 2))
        return Snapshot(now, WINDOW_S, samples, hosts)


def loads() -> list[float]:
    hours = np.arange(WINDOWS)
    burst = np.where((hours > 20) & (hours < 24), 200, 0)
    return [float(rate) for rate in 100 + 60 * np.sin(hours / 6) + burst]


def build(name: str, topology: Topology) -> Planner:
    if "future" not in PLANNERS.constants(name):
        return PLANNERS.build(name)
    visits = Flow(topology, {e: SHARES[e] for e in topology.edges}).theta()
    needed = {
        n: np.array([need(rate * visits[n], SERVICE[n]) for rate in loads()])
        for n in topology.names
    }
    work = {n: np.array(loads()) * visits[n] * SERVICE[n] for n in topology.names}
    return PLANNERS.build(name, future=Future(0.0, WINDOW_S, needed, work, spare_s=5.0))


def run(
    name: str, topology: Topology, record: Callable[[Decision], None] = lambda decision: None
) -> tuple[Autoscaler, list[Decision]]:
    environment = StubEnvironment(topology, loads())
    cadence = Cadence(horizon=3, lookback=10, scope="operators")
    loop = Autoscaler(
        topology, environment, build(name, topology), environment, Basic, (), cadence, "act", record
    )
    return loop, [loop.step(WINDOW_S * (i + 1)) for i in range(WINDOWS)]


@EVERY
@TOPOLOGIES
def test_every_plan_names_every_operator_at_least_one_replica_and_says_why_with_numbers(
    name: str, topology: Topology
) -> None:
    _, decisions = run(name, topology)
    assert {d.outcome for d in decisions} <= {"applied", "unchanged", "waiting"}, [
        d.error for d in decisions if d.error
    ]
    plans = [d.proposed for d in decisions if d.proposed is not None]
    assert len(plans) > WINDOWS / 2
    for plan in plans:
        assert set(plan.replicas) == set(topology.names)
        assert min(plan.replicas.values()) >= 1
        assert all(isinstance(r, int) for r in plan.replicas.values())
        for operator in topology.names:
            assert any(c.isdigit() for c in plan.reasons[operator] + plan.reasons.get("", "")), (
                plan.reasons
            )
            assert plan.reasons[operator]


@EVERY
def test_the_same_past_gives_the_same_plan(name: str) -> None:
    assert run(name, DIAMOND)[1] == run(name, DIAMOND)[1]


@EVERY
def test_replayed_from_a_journal_it_decides_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Journal(path, Run("run", name, DIAMOND, WINDOW_S, 0.0)) as journal:
        _, decisions = run(name, DIAMOND, journal.append)
    written = [d for d in read(path)[1] if isinstance(d.proposed, Plan)]
    again = [
        d for d in replay(DIAMOND, read(path)[1], build(name, DIAMOND)) if d.proposed is not None
    ]
    assert len(written) == sum(1 for d in decisions if d.proposed is not None)
    assert [d.proposed for d in again] == [d.proposed for d in written]


@EVERY
def test_knowing_nothing_is_not_ready(name: str) -> None:
    planner = PLANNERS.build(name)
    if name == "static":
        assert planner.plan(CHAIN, History(CHAIN), {}).reasons["a"]
        return
    with pytest.raises(NotReady):
        planner.plan(CHAIN, History(CHAIN), {n: Forecast((1.0,)) for n in CHAIN.names})


LEARNERS = tuple(n for n in PLANNERS.names if isinstance(build(n, DIAMOND), Learner))
MONOTONE = tuple(n for n in PLANNERS.names if isinstance(build(n, DIAMOND), Monotone))


def test_these_planners_learn_and_these_promise_to_be_monotone() -> None:
    assert set(LEARNERS) >= {"rlearning", "thresholds", "sarsa"}
    assert set(MONOTONE) >= {"static", "reactive", "proactive", "pa-sps", "ds2", "backlog"}


@pytest.mark.parametrize("name", LEARNERS)
def test_learned_state_survives_saving(name: str) -> None:
    loop, _ = run(name, DIAMOND)
    learned, fresh = loop.planner, build(name, DIAMOND)
    assert isinstance(learned, Learner)
    assert isinstance(fresh, Learner)
    saved = json.loads(json.dumps(learned.state()))
    if name != "thresholds":  # its state is what it has asked for and is still on its way
        assert saved != fresh.state()
    fresh.restore(saved)
    assert fresh.state() == learned.state()


def planned(name: str, topology: Topology, factor: float, replicas: int) -> Mapping[str, int]:
    """The plan after 15 windows of ``factor`` times the load; ``replicas`` stay as they are."""
    environment = StubEnvironment(topology, [factor * rate for rate in loads()])
    environment.replicas = dict.fromkeys(topology.names, replicas)
    history, planner, plan = History(topology), build(name, topology), None
    for window in range(15):
        history.append(environment.read(WINDOW_S * (window + 1)))
        rates = {n: float(history.rates(n)[-1]) for n in topology.names}
        with suppress(NotReady):
            plan = planner.plan(
                topology, history, {n: Forecast((r,) * 3) for n, r in rates.items()}
            )
    assert plan is not None
    return plan.replicas


@pytest.mark.parametrize("replicas", [3, 12], ids=["overloaded", "idle"])
@pytest.mark.parametrize("name", MONOTONE)
@TOPOLOGIES
def test_more_load_never_gives_fewer_replicas(name: str, topology: Topology, replicas: int) -> None:
    plans = [planned(name, topology, f, replicas) for f in (0.5, 0.8, 1.0, 1.3, 1.7, 2.4, 3.5)]
    for lower, higher in pairwise(plans):
        assert all(higher[n] >= lower[n] for n in topology.names), (lower, higher)
    if name != "static":
        assert sum(plans[-1].values()) > sum(plans[0].values())
