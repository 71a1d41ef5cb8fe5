"""FUGU's threshold planner: scale out above a host utilization, scale in below another (section IV,
A and B).

It decides when; ``HostAssignment`` decides what moves where. Replica counts stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from foretide.errors import InvalidConfig
from foretide.history import History
from foretide.model import Forecast, Plan
from foretide.plan.hosts.assignment import HostAssignment, Pending, Rules
from foretide.topology import Topology


@dataclass(frozen=True, slots=True)
class ThresholdSettings(Rules):
    """``Rules``, and when they are applied: to each host or to the mean of all, after how many
    windows.
    """

    scope: Literal["local", "global"] = "local"
    windows: int = 3

    def __post_init__(self) -> None:
        Rules.__post_init__(self)
        if self.scope not in ("local", "global"):
            raise InvalidConfig(
                f"scope is {self.scope!r}: thresholds are 'local' (per host) or 'global' (the mean "
                "of all hosts)"
            )


class Thresholds:
    """Local: a host above ``upper`` in each of the last ``windows`` windows sheds operators down to
    ``target``; one below ``lower`` for as long is released if all its operators fit elsewhere, else
    nothing happens. Hosts involved rest for ``grace_s``. The fullest host sheds first, the emptiest
    is released first.

    Global: the same on the mean utilization of all hosts. Above ``upper`` every host over the
    target sheds down to it; below ``lower`` the least loaded host is released; all hosts rest after
    a decision. One overloaded host among idle ones is not noticed: a weakness of the published
    method, kept.

    The paper gives 0.3, 0.8 and 0.6 but neither the number of windows nor the grace period: 3
    windows and 30 s are ours. Raises NotReady while no host is known.
    """

    Settings = ThresholdSettings

    def __init__(self, settings: ThresholdSettings | None = None) -> None:
        self.rules = settings or ThresholdSettings()
        self.scope = self.rules.scope
        self.windows = self.rules.windows
        self.pending = Pending()

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        fleet = HostAssignment(topology, history.latest, self.pending, self.rules)
        if self.scope == "local":
            self._each_host(fleet, history)
        else:
            self._all_hosts(fleet, history)
        return fleet.plan()

    def _each_host(self, fleet: HostAssignment, history: History) -> None:
        levels: dict[str, list[float]] = {}
        for snapshot in history.recent(self.windows):
            for host in snapshot.hosts or ():
                levels.setdefault(host.name, []).append(host.utilization)
        for host in sorted(fleet.deciding, key=lambda h: -h.utilization):
            if self._above(levels[host.name]):
                fleet.shed(
                    host.name,
                    f"{host.name} is at {host.utilization:.2f}, "
                    f"{self._broken('above', self.rules.upper)}",
                )
        for host in sorted(fleet.deciding, key=lambda h: h.utilization):
            if host.name not in self.pending.resting and self._below(levels[host.name]):
                fleet.release(
                    host.name,
                    f"{host.name} is at {host.utilization:.2f}, "
                    f"{self._broken('below', self.rules.lower)}",
                )

    def _all_hosts(self, fleet: HostAssignment, history: History) -> None:
        means = [
            sum(h.utilization for h in s.hosts) / len(s.hosts)
            for s in history.recent(self.windows)
            if s.hosts
        ]
        if self.pending.resting:
            return
        if self._above(means):
            why = (
                f"the mean utilization is {means[-1]:.2f}, "
                f"{self._broken('above', self.rules.upper)}"
            )
            for host in sorted(fleet.deciding, key=lambda h: -h.utilization):
                if host.utilization > self.rules.target:
                    fleet.shed(host.name, why)
        elif self._below(means):
            why = (
                f"the mean utilization is {means[-1]:.2f}, "
                f"{self._broken('below', self.rules.lower)}"
            )
            fleet.release(min(fleet.deciding, key=lambda h: h.utilization).name, why)

    def _above(self, levels: list[float]) -> bool:
        return len(levels) == self.windows and min(levels) > self.rules.upper

    def _below(self, levels: list[float]) -> bool:
        return len(levels) == self.windows and max(levels) < self.rules.lower

    def _broken(self, side: str, threshold: float) -> str:
        return f"{side} {threshold:.2f} for {self.windows} windows"

    def state(self) -> dict[str, Any]:
        return self.pending.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.pending = Pending.of(state)
