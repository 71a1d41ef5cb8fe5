"""Systems that scale by host or by CPU come to rest under a constant load: no crash, a reason for
everything, no oscillation.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from foretide.apps import app
from foretide.load import Load
from foretide.model import Decision
from foretide.sim.environment import Simulation
from foretide.sim.hosts import HostCosts
from foretide.systems import system

WINDOWS, SETTLED = 100, 50


def steady(name: str, of: str, rate: float) -> list[Decision]:
    described = app(of)
    load = Load("steady", np.full(int(WINDOWS * described.window_s), rate))
    environment = Simulation(described, load, hosts=HostCosts(start_s=5.0, first=5))
    loop = system(name).autoscaler(described.topology, environment, environment)
    return [loop.step(i * described.window_s) for i in range(1, WINDOWS + 1)]


HOST_CASES = [
    (s, "ticks", r) for s in ("fugu-local", "fugu-global", "fugu-rl") for r in (60.0, 150.0)
]
LOADED = (("insensitive", 50.0), ("twitter-linear", 500.0), ("opinion", 50.0))
CPU_CASES = [(s, a, r) for s in ("dabs-storm", "incremental", "rlearning") for a, r in LOADED]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "of", "rate"), HOST_CASES + CPU_CASES)
def test_comes_to_rest_under_a_constant_load(name: str, of: str, rate: float) -> None:
    decisions = steady(name, of, rate)
    assert {d.outcome for d in decisions} <= {"applied", "unchanged"}
    plans = [d.plan for d in decisions if d.plan is not None]
    assert len(plans) == WINDOWS
    assert all(plan.reasons.get(o) for plan in plans for o in plan.replicas)
    wanted = [(p.replicas, p.placement, p.release) for p in plans]
    assert sum(a != b for a, b in pairwise(wanted[SETTLED:])) <= 3
    last = decisions[-1].snapshot
    assert last is not None
    assert sum(s.backlog for s in last.samples.values()) < 2 * rate


def test_a_failing_world_leaves_a_host_planner_consistent() -> None:
    """The actuator refuses once: the next windows plan from what runs, and the loop goes on."""
    described = app("ticks")
    environment = Simulation(
        described, Load("steady", np.full(600, 150.0)), hosts=HostCosts(start_s=5.0, first=5)
    )
    refused: list[object] = []

    class Refusing:
        def apply(self, plan: object) -> None:
            if not refused:
                refused.append(plan)
                raise RuntimeError("the cluster manager is away")
            environment.apply(plan)  # type: ignore[arg-type]

    loop = system("fugu-rl").autoscaler(described.topology, environment, Refusing())
    decisions = [loop.step(i * described.window_s) for i in range(1, 40)]
    assert [d.outcome for d in decisions].count("failed") == 1
    final = decisions[-1].snapshot
    assert final is not None
    assert max(h.utilization for h in final.hosts or ()) < 0.9
