"""Static provisioning: what most pipelines run with today."""

from __future__ import annotations

from collections.abc import Mapping

from foretide.history import History
from foretide.model import Forecast, Plan
from foretide.topology import Topology
from foretide.wording import plural


class Static:
    """``replicas`` for every operator, or a number per operator."""

    monotone = True

    def __init__(self, replicas: int | Mapping[str, int] = 4) -> None:
        self.replicas = replicas

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        fixed = self.replicas
        target = {
            n: fixed if isinstance(fixed, int) else fixed.get(n, topology[n].min_replicas)
            for n in topology.names
        }
        return Plan(target, {n: f"fixed at {plural(r, 'replica')}" for n, r in target.items()})
