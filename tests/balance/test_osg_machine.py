"""The published machines, driven by a small queueing loop in plain Python."""

import heapq

import numpy as np
import pytest

from foretide.balance import osg_machine as osg
from foretide.balance.keys import mixed
from foretide.balance.osg_machine import choose, finished, new_machine, resized

pytestmark = pytest.mark.slow  # compiling the machines takes longer than running them

COSTS = np.linspace(0.010, 0.100, 10)
with np.errstate(over="ignore"):
    KEYS = mixed(np.arange(10).astype(np.uint64))


class Servers:
    """FIFO replicas fed by one machine: completion times per event."""

    def __init__(self, replicas: int, window: int = 50, mu: float = 0.1) -> None:
        self.machine = new_machine(1, 16, window, mu)
        self.replicas = replicas
        self.free_at = np.zeros(16)
        self.pending: list[tuple[float, int, int, float]] = []
        self.phases: list[int] = []

    def offer(
        self, at: float, value: int, seconds: float, grouping: str = "osg", turn: int = 0
    ) -> float:
        """Completion time of one event that arrives at ``at``; finished events are reported to the
        machine in order of time.
        """
        while self.pending and self.pending[0][0] <= at:
            then, slot, done, cost = heapq.heappop(self.pending)
            if slot < self.replicas:
                finished(self.machine, 0, 0, self.replicas, slot, KEYS[done], (cost, then))
        if grouping == "osg":
            replica = int(choose(self.machine, 0, 0, self.replicas, KEYS[value], at))
        elif grouping == "oracle":
            replica = int(np.argmin(self.free_at[: self.replicas]))
        else:
            replica = turn % self.replicas
        self.free_at[replica] = max(self.free_at[replica], at) + seconds
        heapq.heappush(self.pending, (self.free_at[replica], replica, value, seconds))
        self.phases.append(int(self.machine.op_i[0, osg.PHASE]))
        return float(self.free_at[replica] - at)


def stream(
    seed: int, count: int, replicas: int, utilization: float = 0.9
) -> tuple[np.ndarray, np.ndarray]:
    weights = np.arange(1, 11) ** -1.5
    weights /= weights.sum()
    rng = np.random.default_rng(seed)
    gap = float(weights @ COSTS) / replicas / utilization
    return np.cumsum(rng.exponential(gap, count)), rng.choice(10, count, p=weights)


def completion(
    grouping: str, at: np.ndarray, values: np.ndarray, costs: np.ndarray = COSTS
) -> np.ndarray:
    servers = Servers(4)
    return np.array(
        [
            servers.offer(t, int(v), costs[v], grouping, i)
            for i, (t, v) in enumerate(zip(at, values, strict=True))
        ]
    )


def test_phases_come_in_the_published_order() -> None:
    servers = Servers(4)
    at, values = stream(1, 3000, 4)
    for t, v in zip(at, values, strict=True):
        servers.offer(t, int(v), COSTS[v])
    seen = [p for i, p in enumerate(servers.phases) if i == 0 or p != servers.phases[i - 1]]
    assert seen[:4] == [osg.ROUND_ROBIN, osg.SEND_ALL, osg.WAIT_ALL, osg.RUN]
    assert osg.ROUND_ROBIN not in seen[1:]
    assert servers.phases.count(osg.RUN) > 1000


def test_after_learning_osg_is_far_better_than_shuffle_and_close_to_knowing_the_truth() -> None:
    at, values = stream(2, 20_000, 4)
    later = slice(5000, None)
    mean = {g: completion(g, at, values)[later].mean() for g in ("shuffle", "osg", "oracle")}
    assert mean["osg"] <= 0.75 * mean["shuffle"]
    assert mean["osg"] <= 1.15 * mean["oracle"]


def test_estimates_follow_a_change_of_costs() -> None:
    servers = Servers(4)
    at, values = stream(3, 16_000, 4, utilization=0.6)
    swapped = COSTS[::-1]
    for i, (t, v) in enumerate(zip(at, values, strict=True)):
        servers.offer(t, int(v), (COSTS if i < 8000 else swapped)[v])
    m = servers.machine
    estimates = [osg.estimate(m, 0, k) for k in KEYS[:4]]
    np.testing.assert_allclose(estimates, swapped[:4], rtol=0.05)


def test_estimates_of_when_replicas_are_free_are_true_after_learning() -> None:
    servers = Servers(4)
    at, values = stream(4, 6000, 4)
    for t, v in zip(at, values, strict=True):
        servers.offer(t, int(v), COSTS[v])
    estimated = np.maximum(servers.machine.slot_f[:4, osg.FREE_AT], at[-1])
    np.testing.assert_allclose(estimated, np.maximum(servers.free_at[:4], at[-1]), atol=0.15)


def test_a_pair_tells_what_its_sender_still_holds() -> None:
    """Of 50 events of 0.1 s each replica has done 20, two windows of 10, when its pair leaves at 2
    s: it will be free at 5 s.
    """
    m = new_machine(1, 2, window=10)
    for _ in range(100):
        choose(m, 0, 0, 2, KEYS[0], 0.0)
    for done in range(1, 21):
        for slot in range(2):
            finished(m, 0, 0, 2, slot, KEYS[0], (0.1, 0.1 * done))
    assert m.op_i[0, osg.PHASE] == osg.SEND_ALL
    np.testing.assert_allclose(m.slot_f[:2, osg.FREE_AT], 5.0)


@pytest.mark.parametrize("counts", [(2, 8, 3)])
def test_replicas_change_and_nobody_is_flooded(counts: tuple[int, ...]) -> None:
    servers = Servers(counts[0])
    start = 0.0
    for replicas in counts:
        if replicas != servers.replicas:
            resized(servers.machine, 0, 0, (servers.replicas, replicas), start)
            servers.replicas = replicas
        at, values = stream(replicas, 4000, replicas)
        before = servers.machine.slot_i[:replicas, osg.ASSIGNED].copy()
        for t, v in zip(start + at, values, strict=True):
            servers.offer(t, int(v), COSTS[v])
        given = servers.machine.slot_i[:replicas, osg.ASSIGNED] - before
        assert given.sum() == 4000
        assert given.max() / given.mean() < 1.35
        start += float(at[-1])
