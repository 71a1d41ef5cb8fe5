"""SREA, BGElasor's reactive baseline (section 5): the next window is sized for the last one."""

from __future__ import annotations

from collections.abc import Mapping

from foretide.errors import InvalidConfig
from foretide.history import History
from foretide.model import Forecast, Plan
from foretide.plan.need import known_service_time_s, need
from foretide.topology import Topology


class Reactive:
    """``n_{t+1} = max(1, ceil(rate_t * service_time))`` per operator; forecasts are ignored.

    An operator that has not worked yet keeps its replicas. ``drain_s`` spreads the backlog over
    that many seconds, added to the rate; the published rule has no such term (``None``).
    """

    monotone = True

    def __init__(self, drain_s: float | None = None) -> None:
        if drain_s is not None and not drain_s > 0:
            raise InvalidConfig(f"drain_s is {drain_s:g}: a backlog drains in more than 0 seconds")
        self.drain_s = drain_s

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        replicas, reasons = {}, {}
        latest = history.latest
        for name in topology.names:
            sample = latest.samples[name]
            if sample.arrived + sample.backlog == 0 and history.service_time_s(name) is None:
                replicas[name], reasons[name] = (
                    max(1, sample.replicas),
                    "no events seen yet: replicas stay",
                )
                continue
            service_time_s = known_service_time_s(history, name)
            rate = sample.arrived / latest.window_s
            if self.drain_s is not None:
                rate += sample.backlog / self.drain_s
            replicas[name] = need(rate, service_time_s)
            reasons[name] = (
                f"{rate:.1f} events/s at {service_time_s * 1e3:.2f} ms each keep "
                f"{rate * service_time_s:.2f} replicas busy"
            )
        return Plan(replicas, reasons)
