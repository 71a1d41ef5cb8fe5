"""Every system on operators that share something full: replicas that add nothing are not kept."""

import warnings

import pytest

from foretide.model import Decision, Plan, Snapshot
from foretide.systems import SYSTEMS, system
from foretide.testing import ScriptedEnvironment
from foretide.topology import Operator, Topology

PAIR = Topology((Operator("read", max_replicas=32), Operator("store", ("read",), max_replicas=32)))
SHARED = 4
SLOW = ("bgelasor", "pa-sps")
SENTENCES = (
    "something they share is full",
    "measured throughput adds nothing",  # a planner that looks at the same measurement itself
)


class LockedStore(ScriptedEnvironment):
    """``store`` writes to one database that serves 4 writers at a time: further replicas wait for
    it, busy all the while, and each makes the others a little slower.
    """

    def __init__(self) -> None:
        super().__init__(PAIR, {"read": 0.005, "store": 0.05}, lambda at: 200.0)
        self.most = 1

    def apply(self, plan: Plan) -> None:
        super().apply(plan)
        self.most = max(self.most, self.replicas["store"])

    def read(self, now: float) -> Snapshot:
        replicas = self.replicas["store"]
        used = min(replicas, SHARED) * (0.99 ** max(0, replicas - SHARED))
        self.service_time_s = {"read": 0.005, "store": 0.05 * replicas / used}
        return super().read(now)


def run(name: str, windows: int = 150) -> tuple[LockedStore, list[Decision]]:
    world = LockedStore()
    loop = system(name).autoscaler(PAIR, world, world, "act", effect_check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return world, [loop.step(10.0 * i) for i in range(1, windows + 1)]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in SYSTEMS]
)
def test_no_system_goes_on_adding_replicas_that_add_nothing(name: str) -> None:
    world, decisions = run(name)
    said = [
        d.plan.reasons["store"]
        for d in decisions
        if d.plan and any(text in d.plan.reasons.get("store", "") for text in SENTENCES)
    ]
    store = [d.snapshot.samples["store"].replicas for d in decisions if d.snapshot]
    if not said:  # it settled at one number of replicas, so there was nothing to compare
        assert len(set(store[20:])) == 1
        return
    assert sum(store[75:]) / len(store[75:]) < world.most, "what added nothing was taken back"


def test_a_change_that_made_it_worse_is_taken_back_once() -> None:
    """srea goes to 32 replicas on the growing backlog; from then on it stays at what was as
    good.
    """
    world, decisions = run("srea")
    store = [d.snapshot.samples["store"] for d in decisions if d.snapshot]
    assert world.most > 2 * SHARED
    peak = max(range(len(store)), key=lambda i: store[i].replicas)
    settled = [s.replicas for s in store[peak + 10 : peak + 40]]
    assert max(settled) < world.most
    assert len(set(settled)) == 1, settled
    assert any(
        d.plan and "were expected): something they share is full" in d.plan.reasons["store"]
        for d in decisions
    )


def test_where_nothing_is_shared_the_check_changes_nothing() -> None:
    plans = []
    for effect_check in (False, True):
        world = ScriptedEnvironment(PAIR, {"read": 0.005, "store": 0.05}, lambda at: 100 + at % 900)
        loop = system("srea").autoscaler(PAIR, world, world, "act", effect_check=effect_check)
        plans.append([loop.step(10.0 * i).plan for i in range(1, 200)])
    assert plans[0] == plans[1]
