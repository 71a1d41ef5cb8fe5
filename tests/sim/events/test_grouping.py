"""Groupings in the event engine: costs of 10 to 100 ms by value, Zipf 1.5, four replicas."""

from dataclasses import replace

import numpy as np
import pytest

from foretide.apps import App, Service, Values
from foretide.load import Load
from foretide.model import Plan
from foretide.sim.codes import COMPILED
from foretide.sim.environment import Simulation
from foretide.sim.events.queues import QueueModel
from foretide.topology import Operator, Topology

pytestmark = pytest.mark.slow
COSTS = tuple(np.linspace(0.010, 0.100, 10).tolist())
APP = App(
    "sensitive",
    "one operator whose events cost what their value says",
    "DABS-Storm, section 7",
    Topology((Operator("lookup", max_replicas=8),)),
    {"lookup": Service(0.05, "by-value", by_value_s=COSTS)},
    values=Values(10, zipf=1.5),
    arrivals="poisson",
    window_s=10.0,
)


def offered(replicas: int, seconds: int, utilization: float = 0.9) -> Load:
    mean_s = APP.service["lookup"].average_s(APP.values)
    return Load("steady", np.full(seconds, replicas * utilization / mean_s))


def latencies_ms(
    grouping: str, learned_after_s: int = 300, app: App = APP, hosts: tuple[float, ...] = ()
) -> np.ndarray:
    """End-to-end latencies of a run of 20 minutes at 90 % utilization, after the learning time."""
    environment = Simulation(
        app,
        offered(4, 1200, 0.9 if not hosts else 0.45),
        grouping=grouping,
        replicas={"lookup": 4},
        seed=3,
    )
    if hosts:
        assert isinstance(environment._model, QueueModel)
        environment._model.state.host_cores[:] = hosts
    skipped = 0
    for window in range(1, 121):
        environment.read(window * 10.0)
        if window * 10 == learned_after_s:
            skipped = len(environment.latencies_ms()[0])
    return np.asarray(environment.latencies_ms()[0])[skipped:]


def test_osg_beats_shuffle_and_comes_close_to_the_oracle() -> None:
    mean = {g: latencies_ms(g).mean() for g in ("shuffle", "osg", "oracle")}
    print({g: round(float(m), 1) for g, m in mean.items()}, "ms mean completion time")
    assert mean["osg"] <= 0.75 * mean["shuffle"]
    assert mean["osg"] <= 1.15 * mean["oracle"]


def test_load_aware_beats_shuffle_when_one_replica_is_half_as_fast() -> None:
    """Four hosts, one replica each; a host of half a core serves at half the pace and is 90 % busy
    when all get as much.
    """
    hosted = replace(APP, hosts=4, host_cores=1.0)
    p99 = {
        g: np.percentile(latencies_ms(g, app=hosted, hosts=(1.0, 1.0, 1.0, 0.5)), 99)
        for g in ("shuffle", "load-aware")
    }
    print({g: round(float(v), 1) for g, v in p99.items()}, "ms p99")
    assert p99["load-aware"] < p99["shuffle"]


def test_osg_recovers_within_five_windows_when_values_swap_costs() -> None:
    """Mean latency of the sixth to tenth window after the swap against a run that always had the
    new costs, seed by seed.

    Replicas learn the new costs at different times, and one that still goes by the old ones gets
    more than it can do until its next pair. While the scheduler did not take from that pair what
    the replica held, seed 7 came to 5.56 and 5 of 40 seeds to more than 1.1; now 2 of 40 do (1.13
    and 1.32), whose last replica learned within the fifth window and was not yet through its queue.
    """

    def after_swap(grouping: str, swap: bool, seed: int) -> float:
        mean_s = Service(1.0, "by-value", by_value_s=COSTS[::-1]).average_s(APP.values)
        environment = Simulation(
            APP,
            Load("steady", np.full(900, 4 * 0.85 / mean_s)),
            grouping=grouping,
            replicas={"lookup": 4},
            seed=seed,
        )
        assert isinstance(environment._model, QueueModel)
        table = environment._model.state.by_value_s
        new = table[:, ::-1].copy()
        if not swap:
            table[:] = new
        means_ms = []
        for window in range(1, 31):
            if window == 16 and swap:
                table[:] = new
            seen = environment.read(window * 30.0)
            if 16 + 5 <= window < 16 + 10 and seen.latency:
                means_ms.append(seen.latency.mean_ms)
        return float(np.mean(means_ms))

    times = [
        after_swap("osg", swap=True, seed=seed) / after_swap("osg", swap=False, seed=seed)
        for seed in range(5, 10)
    ]
    print(
        "latency after the swap over latency when it was always so:", [round(t, 3) for t in times]
    )
    assert max(times) <= 1.1


@pytest.mark.parametrize("grouping", [g for g in COMPILED if g != "shared"])
@pytest.mark.parametrize("mode", ["events", "batch"])
def test_no_event_is_lost_while_replicas_change(grouping: str, mode: str) -> None:
    environment = Simulation(APP, offered(4, 240), grouping=grouping, mode=mode, seed=2)
    arrived = processed = dropped = 0.0
    for window in range(1, 25):
        environment.apply(Plan({"lookup": (2, 8, 3)[window % 3]}))
        sample = environment.read(window * 10.0).samples["lookup"]
        arrived, processed = arrived + sample.arrived, processed + sample.processed
        dropped += sample.dropped or 0.0
    assert arrived == processed + dropped + sample.backlog
    assert processed > 0
