"""Hosts of a simulated environment: which run, which replicas they hold, and what a move costs.

Owns names and placements; the engines slow the replicas of an overloaded host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foretide.errors import ActuationError
from foretide.model import Plan
from foretide.topology import Topology


@dataclass(frozen=True, slots=True)
class HostCosts:
    """A new host starts ``start_s`` after it is requested; an operator that moves pauses for
    ``migration_s``.

    ``first`` hosts run at the beginning (None: all), with the replicas spread over them.
    """

    start_s: float = 0.0
    migration_s: float = 1.0
    first: int | None = None


class Hosts:
    """Up to ``most`` hosts. ``placement`` names the hosts of every operator; replica r sits on the
    r-th of them, round and round.
    """

    def __init__(self, topology: Topology, most: int, costs: HostCosts) -> None:
        self.most = most
        self.costs = costs
        self.names: dict[int, str] = {
            i: f"host-{i + 1}" for i in range(min(costs.first or most, most))
        }
        self._coming: dict[str, float] = {}
        running = list(self.names.values())
        turns = [tuple(running[i:] + running[:i]) for i in range(len(running))]
        self.placement: dict[str, tuple[str, ...]] = {
            n: turns[i % len(turns)] for i, n in enumerate(topology.names)
        }

    def index(self, name: str) -> int:
        return next(i for i, n in self.names.items() if n == name)

    def ask(self, plan: Plan, now: float, replicas: Mapping[str, int]) -> float:
        """Start the new hosts in a plan's placement; returns the instant at which all of them run.

        ``replicas`` are those that will run then: a released host that is still in use stays.
        """
        asked = {h for hosts in (plan.placement or {}).values() for h in hosts}
        self._coming = {h: t for h, t in self._coming.items() if h in asked}
        new = sorted(asked - set(self.names.values()) - set(self._coming))
        used = {
            h
            for n, hosts in {**self.placement, **(plan.placement or {})}.items()
            for h in _seats(hosts, replicas[n])
        }
        kept = (set(self.names.values()) | set(self._coming)) - (set(plan.release) - used)
        if len(kept) + len(new) > self.most:
            raise ActuationError(
                f"the plan starts {', '.join(new)} beside {len(kept)} hosts, but there are only "
                f"{self.most}: release one first"
            )
        self._coming.update(dict.fromkeys(new, now + self.costs.start_s))
        return max([now, *(t for h, t in self._coming.items() if h in asked)])

    def move(self, plan: Plan, replicas: Mapping[str, int]) -> list[str]:
        """Carry out a placement; returns the operators whose running replicas moved. A released
        host that is not in use goes.
        """
        placement = plan.placement or {}
        moved = [
            n
            for n, hosts in placement.items()
            if _seats(hosts, replicas[n]) != _seats(self.placement[n], replicas[n])
        ]
        self.placement.update(placement)
        used = {h for n, hosts in self.placement.items() for h in _seats(hosts, replicas[n])}
        self.names = {i: h for i, h in self.names.items() if h in used or h not in plan.release}
        left = set(self.names.values())
        self.placement = {
            n: tuple(h for h in hosts if h in left or h in used)
            for n, hosts in self.placement.items()
        }
        for name in sorted(used - left):
            self._coming.pop(name, None)
            self.names[next(i for i in range(self.most) if i not in self.names)] = name
        return moved


def _seats(hosts: tuple[str, ...], replicas: int) -> list[str]:
    return [hosts[r % len(hosts)] for r in range(replicas)]
