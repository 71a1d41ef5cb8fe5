"""A run that is quick to make: the loop on a scripted environment, with latencies that follow the
backlog.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foretide.model import Array, Latency, Plan, Snapshot
from foretide.sim.compare import Scenario
from foretide.systems import System
from foretide.testing import ScriptedEnvironment


class FollowingEnvironment:
    """ScriptedEnvironment under a case's load; an event's latency is what its operators' backlogs
    take to serve.
    """

    def __init__(self, case: Scenario, system: System) -> None:
        times = {n: case.app.service_s(n) for n in case.app.topology.names}
        self.inner = ScriptedEnvironment(
            case.app.topology, times, lambda at: case.load.at(at - case.window_s / 2), case.window_s
        )
        self.inner.replicas.update(case.start())
        self.latencies: list[float] = []

    def apply(self, plan: Plan) -> None:
        self.inner.apply(plan)

    def read(self, now: float) -> Snapshot:
        seen = self.inner.read(now)
        times = self.inner.service_time_s
        wait_ms = 1000 * sum(
            s.backlog * times[n] / s.replicas + times[n] for n, s in seen.samples.items()
        )
        self.latencies.append(wait_ms)
        samples = {
            n: replace(s, replica_busy_s=((s.busy_s or 0.0) / s.replicas,) * s.replicas)
            for n, s in seen.samples.items()
        }
        return replace(
            seen, samples=samples, latency=Latency(10, wait_ms, wait_ms, wait_ms * 1.5, wait_ms * 2)
        )

    def latencies_ms(self) -> tuple[Array, Array | None]:
        return np.array(self.latencies), None

    def forget_latencies(self) -> None:
        self.latencies.clear()
