"""Incremental scaling: one replica up or down at a time on CPU thresholds (the first baseline of
DABS-Storm, section 7.2).
"""

from __future__ import annotations

from collections.abc import Mapping

from foretide.errors import InvalidConfig
from foretide.history import History
from foretide.model import Forecast, Plan
from foretide.topology import Topology


class Incremental:
    """Utilization above ``upper`` adds one replica, below ``lower`` takes one away; forecasts are
    ignored.

    The paper names the rule but not its thresholds; 0.3 and 0.8 are those of FUGU. Not measured:
    replicas stay.
    """

    def __init__(self, lower: float = 0.3, upper: float = 0.8) -> None:
        if not 0 <= lower < upper:
            raise InvalidConfig(
                f"lower {lower} and upper {upper}: utilizations need 0 <= lower < upper"
            )
        self.lower = lower
        self.upper = upper

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        replicas, reasons = {}, {}
        for name in topology.names:
            now = max(1, history.replicas(name))
            busy = history.utilization(name)
            if busy is None:
                replicas[name], reasons[name] = now, "utilization was not measured: replicas stay"
            elif busy > self.upper:
                replicas[name], reasons[name] = (
                    now + 1,
                    f"utilization {busy:.2f} is above {self.upper:.2f}: one replica more",
                )
            elif busy < self.lower and now > topology[name].min_replicas:
                replicas[name], reasons[name] = (
                    now - 1,
                    f"utilization {busy:.2f} is below {self.lower:.2f}: one replica less",
                )
            else:
                replicas[name], reasons[name] = (
                    now,
                    f"utilization {busy:.2f} is in order: {now} replicas stay",
                )
        return Plan(replicas, reasons)
