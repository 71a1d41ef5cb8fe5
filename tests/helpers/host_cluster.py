"""Hosts for the tests of host-level planners: a tiny cluster that carries out placements at
once.
"""

from __future__ import annotations

from collections.abc import Mapping

from foretide.history import History
from foretide.model import Host, Plan, Sample, Snapshot
from foretide.topology import Operator, Topology


def queries(count: int) -> Topology:
    return Topology(
        (Operator("feed"), *(Operator(f"q{i}", inputs=("feed",)) for i in range(count)))
    )


def snapshot(topology: Topology, loads: Mapping[str, Mapping[str, float]], at: float) -> Snapshot:
    samples = {
        n: Sample(arrived=10, processed=10, backlog=0, replicas=1, busy_s=1.0)
        for n in topology.names
    }
    hosts = tuple(Host(n, sum(on.values()), 1.0, dict(on)) for n, on in loads.items())
    return Snapshot(at, 5.0, samples, hosts)


class Cluster:
    """Operators of given loads on hosts of one core; a plan is carried out before the next
    window.
    """

    def __init__(
        self, topology: Topology, loads: Mapping[str, float], where: Mapping[str, str]
    ) -> None:
        self.topology, self.loads, self.where = topology, dict(loads), dict(where)
        self.names = list(dict.fromkeys(where.values()))
        self.history = History(topology)
        self.at = 0.0

    def window(self) -> History:
        self.at += 5.0
        on = {n: {o: self.loads[o] for o, h in self.where.items() if h == n} for n in self.names}
        self.history.append(snapshot(self.topology, on, self.at))
        return self.history

    def apply(self, plan: Plan) -> None:
        assert plan.placement is not None
        self.where = {o: hosts[0] for o, hosts in plan.placement.items()}
        started = [h for h in dict.fromkeys(self.where.values()) if h not in self.names]
        self.names = [n for n in [*self.names, *started] if n not in plan.release]
        assert plan.executors == len(self.names)

    def utilization(self) -> dict[str, float]:
        return {n: sum(self.loads[o] for o, h in self.where.items() if h == n) for n in self.names}
