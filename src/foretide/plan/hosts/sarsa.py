"""FUGU's reinforcement learning: each host learns for itself when to shed and when to go (section
IV-C).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from foretide.history import History
from foretide.model import Forecast, Host, Plan
from foretide.plan.hosts.assignment import HostAssignment, Pending, Rules
from foretide.plan.hosts.rewards import Action, Learning, RewardTable
from foretide.topology import Topology


@dataclass(frozen=True, slots=True)
class _Taken:
    """An action a host took and has not learned from yet."""

    utilization: float
    action: Action
    failed: bool


@dataclass(frozen=True, slots=True)
class SarsaSettings(Rules):
    """``Rules``, and the constants of learning (``rewards.Learning``). Tables have an entry for
    every ``step`` of utilization.
    """

    impact: float = 0.2
    duration: float = 80.0
    beta: float = 0.1
    penalty: float = -1.0
    step: float = 0.05


class Sarsa:
    """A reward table per host, created when the host starts and dropped when it leaves. The action
    with the highest value is taken at once.

    A host learns from no action in the next window and from scale out after the grace period. It
    gets a negative reward for a wrong decision that packing could not carry out: a release, or
    scale out at the target or below it. The paper punishes every such decision; then hosts that
    need to shed while no host is left learn to stay overloaded, so here a host above the target
    that finds no room learns nothing. Neither does a host that received operators meanwhile. Tables
    and pending moves are saved and restored. Raises NotReady while no host is known.
    """

    Settings = SarsaSettings

    def __init__(self, settings: SarsaSettings | None = None) -> None:
        self.rules = rules = settings or SarsaSettings()
        self.learning = Learning(rules.impact, rules.duration, rules.beta, rules.penalty)
        self.step = rules.step
        self.pending = Pending()
        self.tables: dict[str, RewardTable] = {}
        self._taken: dict[str, _Taken] = {}

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        fleet = HostAssignment(topology, history.latest, self.pending, self.rules)
        rules = self.rules
        self.tables = {
            n: self.tables.get(n) or RewardTable(rules.lower, rules.upper, rules.target, self.step)
            for n in fleet.hosts
        }
        self._taken = {n: t for n, t in self._taken.items() if n in fleet.hosts}
        actions = {host.name: (host, self._learn_and_choose(host)) for host in fleet.deciding}
        resting = set(self.pending.resting)
        by_level = sorted(actions.values(), key=lambda c: c[0].utilization)
        for host, action in reversed(by_level):
            if action == "out":
                self._act(fleet, host, action)
        for host, action in by_level:
            if action == "in" and host.name not in self.pending.resting:
                self._act(fleet, host, action)
        for host, action in by_level:
            if action == "none":
                self._taken[host.name] = _Taken(host.utilization, action, failed=False)
        for name in set(self.pending.resting) - resting:
            if name in self._taken and self._taken[name].action == "none":
                del self._taken[name]
        return fleet.plan()

    def _learn_and_choose(self, host: Host) -> Action:
        table = self.tables[host.name]
        taken = self._taken.pop(host.name, None)
        if taken is not None:
            table.learn(
                taken.utilization, taken.action, host.utilization, self.learning, taken.failed
            )
        return table.best(host.utilization)

    def _act(self, fleet: HostAssignment, host: Host, action: Action) -> None:
        row = self.tables[host.name].values[self.tables[host.name].row(host.utilization)]
        rewards = f"rewards in {row[0]:.2f}, none {row[1]:.2f}, out {row[2]:.2f}"
        why = f"{host.name} is at {host.utilization:.2f}, scale {action} promises most ({rewards})"
        done = fleet.shed(host.name, why) if action == "out" else fleet.release(host.name, why)
        if not done:
            fleet.notes.append(
                f"scale {action} of {host.name} at {host.utilization:.2f} found no room"
            )
        if done or action == "in" or host.utilization <= self.rules.target:
            self._taken[host.name] = _Taken(host.utilization, action, failed=not done)

    def state(self) -> dict[str, Any]:
        return {
            "pending": self.pending.state(),
            "tables": {n: t.state() for n, t in self.tables.items()},
            "taken": {n: list(astuple(t)) for n, t in self._taken.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.pending = Pending.of(state["pending"])
        self.tables = {n: RewardTable.of(t) for n, t in state["tables"].items()}
        self._taken = {n: _Taken(*t) for n, t in state["taken"].items()}
