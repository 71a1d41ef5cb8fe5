"""``App``: one pipeline as a description.

No code runs in it: the simulator draws events from it, and ``foretide run --app`` runs it on Spark,
where its operators wait or burn the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from foretide.errors import Infeasible, InvalidConfig
from foretide.model import Array
from foretide.plan.queueing import traffic
from foretide.topology import Topology

Law = Literal["fixed", "exponential", "uniform", "by-value"]


@dataclass(frozen=True, slots=True)
class Values:
    """What events carry: a value in ``0 .. count - 1``, uniform, or by a Zipf law: P(v) ~ (v +
    1)^-zipf.

    >>> Values(2, zipf=1.0).probabilities().round(3)
    array([0.667, 0.333])
    """

    count: int = 1000
    zipf: float | None = None

    def probabilities(self) -> Array:
        weights = (
            np.ones(self.count)
            if self.zipf is None
            else np.arange(1, self.count + 1, dtype=float) ** -self.zipf
        )
        return np.asarray(weights / weights.sum(), dtype=float)


@dataclass(frozen=True, slots=True)
class Service:
    """Busy time of one replica per event, seconds.

    fixed: always ``mean_s``. exponential: mean ``mean_s``. uniform: ``mean_s`` times 1 - spread to
    1 + spread. by-value: an event of value v takes ``by_value_s[v % len(by_value_s)]``; ``mean_s``
    is then ignored, ask the App.
    """

    mean_s: float
    law: Law = "fixed"
    spread: float = 0.5
    by_value_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if (self.law == "by-value") != bool(self.by_value_s):
            raise InvalidConfig(
                "a service time by value needs by_value_s, and only that law takes it"
            )
        if self.mean_s <= 0 or not 0 <= self.spread <= 1 or any(s <= 0 for s in self.by_value_s):
            raise InvalidConfig(f"{self}: service times must be > 0 and the spread between 0 and 1")

    def average_s(self, values: Values) -> float:
        """Mean over the events' values."""
        if self.law != "by-value":
            return self.mean_s
        return float(values.probabilities() @ np.resize(self.by_value_s, values.count))


@dataclass(frozen=True, slots=True)
class App:
    """One pipeline: its edges, the service time of each operator, and how many events it emits.

    ``selectivity`` maps an edge to the events emitted on it per event processed (1 when absent). An
    operator in ``splits`` sends an event along one of its edges at most; any other decides edge by
    edge. ``arrivals``: the events of an interval all at its start, as a Poisson process, or
    evenly spaced.
    ``timeout_s``: an event older than this is dropped at the next operator (None: never). ``hosts``
    machines of ``host_cores`` cores carry the replicas in papers about hosts. ``load`` is the
    default load and ``over_replicas`` the paper's overprovisioned total (r_over), against which
    saved resources are counted.
    """

    name: str
    summary: str
    source: str
    topology: Topology
    service: Mapping[str, Service]
    selectivity: Mapping[tuple[str, str], float] = field(default_factory=dict)
    splits: frozenset[str] = frozenset()
    values: Values = field(default_factory=Values)
    arrivals: Literal["batch", "poisson", "even"] = "batch"
    timeout_s: float | None = None
    hosts: int | None = None
    host_cores: float = 1.0
    load: str = "stable"
    window_s: float = 30.0
    target_latency_s: float = 1.0
    over_replicas: int | None = None

    def __post_init__(self) -> None:
        odd = set(self.service) ^ set(self.topology.names)
        if odd:
            raise InvalidConfig(
                f"app '{self.name}': operators and service times disagree about "
                f"{', '.join(sorted(odd))}"
            )
        for edge, s in self.selectivity.items():
            if edge not in self.topology.edges or s < 0:
                raise InvalidConfig(
                    f"app '{self.name}': selectivity {s} of edge {edge[0]} -> {edge[1]}: no such "
                    "edge, or below 0"
                )
        for name in self.splits:
            if sum(self.share(name, c) for c in self.topology.successors(name)) > 1 + 1e-9:
                raise InvalidConfig(
                    f"app '{self.name}': '{name}' splits, so its selectivities must sum to 1 at "
                    "most"
                )
        try:
            self.visits()
        except Infeasible as error:
            raise InvalidConfig(f"app '{self.name}': {error}") from None

    def share(self, producer: str, consumer: str) -> float:
        """Events emitted on an edge per event the producer processed."""
        return self.selectivity.get((producer, consumer), 1.0)

    def service_s(self, name: str) -> float:
        """Mean service time of an operator, seconds per event."""
        return self.service[name].average_s(self.values)

    def shares(self) -> Array:
        """``share`` of every pair of operators in the order of the topology's names; 0 where no
        edge is.
        """
        names = self.topology.names
        return np.array(
            [
                [self.share(p, c) if c in self.topology.successors(p) else 0.0 for c in names]
                for p in names
            ]
        )

    def external(self) -> Array:
        """The part of the load that comes to each operator from outside: several sources share it
        equally.
        """
        return np.array(
            [(n in self.topology.sources) / len(self.topology.sources) for n in self.topology.names]
        )

    def visits(self) -> dict[str, float]:
        """Events that reach each operator per event offered to the topology (theta): v = external +
        P^T v, loops solved.
        """
        return dict(
            zip(self.topology.names, traffic(self.external(), self.shares()).tolist(), strict=True)
        )
