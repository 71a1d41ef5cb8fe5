"""How a plan becomes replicas: at once, after a restart, or when executors have started.

A reconfiguration is a record of constants. ``targets`` turns a plan into steps with instants. What
was requested before and is still on its way keeps its instant, so repeating a request changes
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from foretide.model import Plan


@dataclass
class CapacityRequests:
    """When each requested replica (by operator) and each executor is ready: instants, in order."""

    replicas: dict[str, list[float]] = field(default_factory=dict)
    executors: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReplicaStep:
    """From ``at`` on these replicas are active; ``pause_s`` is how long the topology is paused
    then.
    """

    at: float
    replicas: Mapping[str, int]
    pause_s: float = 0.0


class Reconfiguration(Protocol):
    """How long a change takes and what it stops."""

    def begin(self, requests: CapacityRequests, replicas: Mapping[str, int]) -> None:
        """Before the first window: these replicas are there."""
        ...

    def targets(self, requests: CapacityRequests, plan: Plan, now: float) -> list[ReplicaStep]:
        """The steps from now on, oldest first; they replace all that were still to come."""
        ...

    @property
    def lead_s(self) -> float:
        """Seconds from asking for capacity until it works."""
        ...

    def slots(self, requests: CapacityRequests, now: float) -> int | None:
        """Task slots there are now; None where nothing limits them."""
        ...


def _resized(pieces: list[float], wanted: int, ready_at: float) -> list[float]:
    """Pieces that came last go first; new ones are there at ``ready_at``."""
    return pieces[:wanted] + [ready_at] * (wanted - len(pieces))


@dataclass(frozen=True, slots=True)
class Pool:
    """Every operator owns its replicas from the start (PA-SPS): one more is active ``activation_s``
    after it is requested.
    """

    activation_s: float = 0.0

    def begin(self, requests: CapacityRequests, replicas: Mapping[str, int]) -> None:
        requests.replicas = {n: [0.0] * r for n, r in replicas.items()}

    def targets(self, requests: CapacityRequests, plan: Plan, now: float) -> list[ReplicaStep]:
        for name, wanted in plan.replicas.items():
            requests.replicas[name] = _resized(
                requests.replicas[name], wanted, now + self.activation_s
            )
        instants = sorted(
            {now, *(t for ready in requests.replicas.values() for t in ready if t > now)}
        )
        return [
            ReplicaStep(
                t, {n: max(1, sum(r <= t for r in ready)) for n, ready in requests.replicas.items()}
            )
            for t in instants
        ]

    @property
    def lead_s(self) -> float:
        return self.activation_s

    def slots(self, requests: CapacityRequests, now: float) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class Restart:
    """Any change stops the whole topology for ``pause_s`` (Storm's rebalance); it goes on with the
    new replicas.
    """

    pause_s: float = 10.0

    def begin(self, requests: CapacityRequests, replicas: Mapping[str, int]) -> None:
        requests.replicas = {n: [0.0] * r for n, r in replicas.items()}

    def targets(self, requests: CapacityRequests, plan: Plan, now: float) -> list[ReplicaStep]:
        before = {n: len(r) for n, r in requests.replicas.items()}
        wanted = {**before, **plan.replicas}
        requests.replicas = {n: [now] * r for n, r in wanted.items()}
        return [ReplicaStep(now, wanted, self.pause_s if wanted != before else 0.0)]

    @property
    def lead_s(self) -> float:
        return self.pause_s

    def slots(self, requests: CapacityRequests, now: float) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class ExecutorStarts:
    """Replicas need slots: an executor has ``cores`` of them and starts ``start_s`` after it is
    requested (at most ``most``).

    While slots are short, every operator keeps one replica and the rest is distributed in
    proportion to what was requested.
    """

    cores: int = 1
    start_s: float = 30.0
    most: int | None = None

    def begin(self, requests: CapacityRequests, replicas: Mapping[str, int]) -> None:
        requests.replicas = {n: [0.0] * r for n, r in replicas.items()}
        requests.executors = [0.0] * math.ceil(sum(replicas.values()) / self.cores)

    def targets(self, requests: CapacityRequests, plan: Plan, now: float) -> list[ReplicaStep]:
        wanted = {**{n: len(r) for n, r in requests.replicas.items()}, **plan.replicas}
        requests.replicas = {n: [now] * r for n, r in wanted.items()}
        count = (
            math.ceil(sum(wanted.values()) / self.cores)
            if plan.executors is None
            else plan.executors
        )
        count = count if self.most is None else min(count, self.most)
        requests.executors = _resized(requests.executors, count, now + self.start_s)
        instants = sorted({now, *(t for t in requests.executors if t > now)})
        return [
            ReplicaStep(
                t, within_slots(wanted, self.cores * sum(e <= t for e in requests.executors))
            )
            for t in instants
        ]

    @property
    def lead_s(self) -> float:
        return self.start_s

    def slots(self, requests: CapacityRequests, now: float) -> int | None:
        return self.cores * sum(e <= now for e in requests.executors)


def within_slots(wanted: Mapping[str, int], slots: int) -> dict[str, int]:
    """Replicas that fit into ``slots``: one each at least, then always to the operator that has the
    smallest share of its wish.

    >>> [within_slots({"a": 6, "b": 2}, slots) for slots in (8, 4, 0)]
    [{'a': 6, 'b': 2}, {'a': 3, 'b': 1}, {'a': 1, 'b': 1}]
    """
    active = dict.fromkeys(wanted, 1)
    if sum(wanted.values()) <= slots:
        return dict(wanted)
    for _ in range(slots - len(active)):
        short = min(
            (n for n in wanted if active[n] < wanted[n]), key=lambda n: (active[n] / wanted[n], n)
        )
        active[short] += 1
    return active
