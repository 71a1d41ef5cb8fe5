"""One suite that every registered planner passes, on a chain, a diamond with a split and a loop."""

import numpy as np
import pytest

from foretide.autoscaler import Autoscaler, Cadence
from foretide.errors import NotReady
from foretide.figures.replay import replay
from foretide.forecast.basic import Basic
from foretide.history import History
from foretide.journal import Journal, Run, read
from foretide.model import Forecast, Host, Plan, Sample, Snapshot
from foretide.parts import Learner
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

    def __init__(self, topology, load):
        self.topology, self.load = topology, load
        self.flow = Flow(topology, {e: SHARES[e] for e in topology.edges})
        self.replicas = dict.fromkeys(topology.names, 1)
        self.backlog = dict.fromkeys(topology.names, 0.0)
        self.window = 0
        self.returning = {}

    def apply(self, plan):
        self.replicas.update(plan.replicas)

    def read(self, now):
        samples, done = {}, {}
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
        used = {n: s.busy_s / WINDOW_S / 2 for n, s in samples.items()}
        hosts = tuple(Host(f"host{i}", min(1.0, sum(used.values()) / 8), 8.0, used) for i in (1, 2))
        return Snapshot(now, WINDOW_S, samples, hosts)


def loads():
    hours = np.arange(WINDOWS)
    return (100 + 60 * np.sin(hours / 6) + np.where((hours > 20) & (hours < 24), 200, 0)).tolist()


def build(name, topology):
    if "future" not in PLANNERS.constants(name):
        return PLANNERS.build(name)
    visits = Flow(topology, {e: SHARES[e] for e in topology.edges}).theta()
    needed = {
        n: np.array([need(rate * visits[n], SERVICE[n]) for rate in loads()])
        for n in topology.names
    }
    return PLANNERS.build(name, future=Future(0.0, WINDOW_S, needed))


def run(name, topology, record=lambda decision: None):
    environment = StubEnvironment(topology, loads())
    cadence = Cadence(horizon=3, lookback=10, scope="operators")
    loop = Autoscaler(
        topology, environment, build(name, topology), environment, Basic, (), cadence, "act", record
    )
    return loop, [loop.step(WINDOW_S * (i + 1)) for i in range(WINDOWS)]


@EVERY
@TOPOLOGIES
def test_every_plan_names_every_operator_at_least_one_replica_and_says_why_with_numbers(
    name, topology
):
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
def test_the_same_past_gives_the_same_plan(name):
    assert run(name, DIAMOND)[1] == run(name, DIAMOND)[1]


@EVERY
def test_replayed_from_a_journal_it_decides_the_same(name, tmp_path):
    path = tmp_path / "run.jsonl"
    with Journal(path, Run("run", name, DIAMOND, WINDOW_S, 0.0)) as journal:
        _, decisions = run(name, DIAMOND, journal.append)
    told = [d for d in read(path)[1] if isinstance(d.proposed, Plan)]
    again = [
        d for d in replay(DIAMOND, read(path)[1], build(name, DIAMOND)) if d.proposed is not None
    ]
    assert len(told) == sum(1 for d in decisions if d.proposed is not None)
    assert [d.proposed for d in again] == [d.proposed for d in told]


@EVERY
def test_knowing_nothing_is_not_ready(name):
    planner = PLANNERS.build(name)
    if name == "static":
        assert planner.plan(CHAIN, History(CHAIN), {}).reasons["a"]
        return
    with pytest.raises(NotReady):
        planner.plan(CHAIN, History(CHAIN), {n: Forecast((1.0,)) for n in CHAIN.names})


@EVERY
def test_learned_state_survives_saving(name):
    loop, _ = run(name, DIAMOND)
    if not isinstance(loop.planner, Learner):
        return
    fresh = build(name, DIAMOND)
    fresh.restore(loop.planner.state())
    assert fresh.state() == loop.planner.state()
