"""Every system in a simulation whose operators share four cores; one on a locked table: replicas
that add nothing are not kept, and nothing is processed later for it.
"""

import warnings
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from watched_query import WatchedQuery

from foretide.apps import App, Service
from foretide.load import Load
from foretide.model import Decision, Host, Plan, Snapshot
from foretide.sim.environment import Simulation
from foretide.speedup import STEP
from foretide.systems import SYSTEMS, system
from foretide.testing import ScriptedEnvironment
from foretide.topology import Operator, Topology

PAIR = Topology((Operator("read", max_replicas=32), Operator("store", ("read",), max_replicas=32)))
SHARED, WINDOWS, LATE = 4, 150, 75
SLOW = ("bgelasor", "pa-sps")
SENTENCES = (
    "something they share is full",
    "measured throughput adds nothing",  # a planner that looks at the same measurement itself
)
FOUR_CORES = App(
    "four cores",
    "120 events/s keep 6.2 cores busy, and one host has 4: a backlog grows whatever is done",
    "tests",
    PAIR,
    {"read": Service(0.002), "store": Service(0.05, "exponential")},
    arrivals="poisson",
    hosts=1,
    host_cores=float(SHARED),
    window_s=10.0,
)


class LockedStore(ScriptedEnvironment):
    """``store`` writes to one database that serves 4 writers at a time: further replicas wait for
    it, busy all the while, and each makes the others a little slower.
    """

    def __init__(self) -> None:
        super().__init__(PAIR, {"read": 0.005, "store": 0.05}, lambda at: 200.0)

    def read(self, now: float) -> Snapshot:
        replicas = self.replicas["store"]
        used = min(replicas, SHARED) * (0.99 ** max(0, replicas - SHARED))
        self.service_time_s = {"read": 0.005, "store": 0.05 * replicas / used}
        return super().read(now)


@dataclass(frozen=True)
class Course:
    """The operator ``store`` in one run."""

    decisions: list[Decision]

    @property
    def replicas(self) -> list[int]:
        return [d.snapshot.samples["store"].replicas for d in self.decisions if d.snapshot]

    def late_throughput(self) -> float:
        late = self.decisions[LATE:]
        return sum(d.snapshot.samples["store"].processed for d in late if d.snapshot)

    def late_replicas(self) -> float:
        return float(np.mean(self.replicas[LATE:]))

    def reasons(self) -> list[str]:
        reasons = [d.plan.reasons.get("store", "") for d in self.decisions if d.plan]
        return [r for r in reasons if any(text in r for text in SENTENCES)]


def course(name: str, environment: Simulation | LockedStore, check: bool = True) -> Course:
    loop = system(name).autoscaler(PAIR, environment, environment, effect_check=check)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Course([loop.step(10.0 * i) for i in range(1, WINDOWS + 1)])


@cache
def simulated(name: str, check: bool) -> Course:
    load = Load("steady", np.full(10 * WINDOWS, 120.0))
    return course(name, Simulation(FOUR_CORES, load), check)


EVERY = [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in SYSTEMS]


@pytest.mark.parametrize("name", EVERY)
def test_no_system_keeps_replicas_that_add_nothing(name: str) -> None:
    """Four replicas keep the cores busy. The fewest from there on that it tried set the measure:
    numbers of replicas are compared when one is 1.5 times the other (``foretide.speedup``).
    """
    run = simulated(name, True)
    enough = min((r for r in run.replicas if r >= SHARED), default=SHARED)
    assert run.late_replicas() < max(STEP * enough, 0.7 * max(run.replicas))
    if not run.reasons():
        assert run.replicas == simulated(name, False).replicas


@pytest.mark.parametrize("name", EVERY)
def test_without_them_as_much_is_processed(name: str) -> None:
    checked, plain = simulated(name, True), simulated(name, False)
    assert checked.late_throughput() > 0.95 * plain.late_throughput()


def test_the_reason_names_both_numbers_and_what_was_expected() -> None:
    reason = simulated("srea", True).reasons()[0]
    assert "replicas process no more than" in reason
    assert "were expected): something they share is full" in reason


def test_a_change_that_made_it_worse_is_taken_back_once() -> None:
    """srea goes to 32 replicas on the growing backlog; from then on it stays at what was as
    good.
    """
    run = course("srea", LockedStore())
    peak = run.replicas.index(most := max(run.replicas))
    assert most > 2 * SHARED
    settled = run.replicas[peak + 10 : peak + 40]
    assert max(settled) < most
    assert len(set(settled)) == 1, settled
    assert any("replicas process less than" in r for r in run.reasons())


class LockedQuery(WatchedQuery):
    """Its tasks write to a table that two of them can write to at a time: on more slots each takes
    longer, as much longer as there are more.
    """

    def window(self, window_s: float = 5.0, step_s: float = 0.1) -> Snapshot:
        waits = max(1.0, min(self.executors, self.tasks) / 2)
        self.per_event_s, self.per_task_s = 0.01 * waits, 0.02 * waits
        hosts = tuple(Host(str(i), 1.0) for i in range(self.executors))
        return replace(super().window(window_s, step_s), hosts=hosts)


class Attached:
    """Executors come and go as ``attach`` asks for them."""

    def __init__(self, query: WatchedQuery) -> None:
        self.query = query

    def read(self, now: float) -> Snapshot:
        return self.query.window(5.0)

    def apply(self, plan: Plan) -> None:
        assert plan.executors is not None
        self.query.ask(plan.executors)


@pytest.mark.parametrize("check", [False, True])
def test_attach_asks_for_no_executors_that_add_nothing(check: bool) -> None:
    """The load rises until two writers are too few: from then on every executor more waits."""
    query = LockedQuery(lambda at: min(60.0 + at / 3, 300.0), limit=2000.0)
    constants = {"target_s": 10.0, "max_executors": 16, "unit": "executors"}
    environment = Attached(query)
    loop = system("attach", planner_constants=constants).autoscaler(
        query.topology, environment, environment, effect_check=check
    )
    decisions = [loop.step(5.0 * i) for i in range(1, 241)]
    executors = [d.plan.executors for d in decisions if d.plan and d.plan.executors]
    assert max(executors) >= 8
    said = [
        d.plan.reasons[""] for d in decisions if d.plan and "share is full" in d.plan.reasons[""]
    ]
    late = executors[-60:]
    if not check:
        assert not said
        assert min(late) >= 8
        return
    assert "slots process no more than" in said[0]
    assert float(np.median(late)) <= 4


def test_where_nothing_is_shared_the_check_changes_nothing() -> None:
    plans = []
    for effect_check in (False, True):
        world = ScriptedEnvironment(PAIR, {"read": 0.005, "store": 0.05}, lambda at: 100 + at % 900)
        loop = system("srea").autoscaler(PAIR, world, world, "act", effect_check=effect_check)
        plans.append([loop.step(10.0 * i).plan for i in range(1, 200)])
    assert plans[0] == plans[1]
