"""DRS's two optimizers: the best use of a number of processors, and the least number that meets a
latency target.

Pure mathematics on an open queueing network (DRS, section III); ``plan/drs.py`` builds the network
from measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import repeat

from foretide.errors import Infeasible, InvalidRecord
from foretide.plan.queueing import Offered, erlang_b, network_sojourn_s, sojourn_s, waiting_share


@dataclass(frozen=True, slots=True)
class Station(Offered):
    """One operator as a queue: events/s that arrive, seconds one takes, and ``(scv_arrival +
    scv_service) / 2`` (1 is M/M/k).
    """

    rate: float
    service_time_s: float
    variability: float = 1.0

    def __post_init__(self) -> None:
        if not all(
            math.isfinite(v) and v >= 0 for v in (self.rate, self.service_time_s, self.variability)
        ):
            raise InvalidRecord(f"{self}: every figure of a station must be finite and >= 0")


@dataclass(frozen=True)
class QueueNetwork:
    """Stations and the load from outside, events/s."""

    stations: tuple[Station, ...]
    load: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.load) and self.load > 0):
            raise InvalidRecord(f"a network's load is {self.load}: it must be > 0 events/s")

    def sojourn_s(self, replicas: Sequence[int]) -> float:
        """E[T](k): mean seconds an event spends in the network (DRS, equation 4); infinite when
        some station cannot keep up.
        """
        times = [
            sojourn_s(k, s.rate, s.service_time_s, s.variability)
            for s, k in zip(self.stations, replicas, strict=True)
        ]
        return network_sojourn_s([s.rate for s in self.stations], times, self.load)

    @property
    def service_s(self) -> float:
        """Seconds of service alone, weighted by visits: what E[T] falls to with endless replicas.
        Algorithm 2 sums the service times unweighted, which is wrong whenever an operator is
        visited more or less than once.
        """
        return sum(s.offered for s in self.stations) / self.load

    @property
    def least(self) -> int:
        return sum(s.least for s in self.stations)

    def assign(self, total: int) -> tuple[int, ...]:
        """See ``assign_processors``."""
        return assign_processors(self, total)

    def fewest(self, target_s: float) -> tuple[int, ...]:
        """See ``min_processors``."""
        return min_processors(self, target_s)


def assign_processors(network: QueueNetwork, total: int) -> tuple[int, ...]:
    """The allocation of ``total`` processors with the least E[T] (DRS, algorithm 1).

    From ``floor(a_i) + 1`` each further processor goes where ``lambda_i * (E[T_i](k) - E[T_i](k +
    1))`` is largest; E[T_i] is convex in k, so greedy is optimal. The printed loop runs while the
    sum is <= K and so assigns one too many; this one stops at K. A heap and the Erlang recursion
    make it O((N + K) log N). Raises Infeasible when ``total`` cannot keep queues finite.

    >>> network = QueueNetwork((Station(10.0, 0.1), Station(10.0, 0.5)), load=10.0)
    >>> assign_processors(network, total=9)
    (2, 7)
    """
    if network.least > total:
        raise Infeasible(
            f"{total} processors cannot keep up with {network.load:.1f} events/s: at least "
            f"{network.least} are needed "
            f"({':'.join(str(s.least) for s in network.stations)})"
        )
    return _climb(network, total - network.least, target_s=-math.inf)


def min_processors(network: QueueNetwork, target_s: float) -> tuple[int, ...]:
    """The allocation of fewest processors with E[T] <= ``target_s`` (DRS, algorithm 2), in one
    greedy pass.

    Growing K by one keeps the greedy choice of every smaller K, so there is no need to start
    over for each K as printed. Raises Infeasible when the service times alone take longer than the
    target.

    >>> network = QueueNetwork((Station(10.0, 0.1), Station(10.0, 0.5)), load=10.0)
    >>> min_processors(network, target_s=0.7)
    (2, 8)
    """
    if target_s < network.service_s:
        raise Infeasible(
            f"a mean latency of {target_s * 1e3:.1f} ms cannot be met: service alone takes "
            f"{network.service_s * 1e3:.1f} ms; "
            "set the target above that"
        )
    return _climb(network, None, target_s)


def _climb(network: QueueNetwork, extra: int | None, target_s: float) -> tuple[int, ...]:
    """Greedy growth from the least allocation until ``extra`` processors are spent or E[T] <=
    target.
    """
    stations = network.stations
    offered = [s.offered for s in stations]
    replicas = [s.least for s in stations]
    # Per station: events waiting on average is weight * C(k, a) / (k - a), by Little's law the part
    # of E[T] that replicas change.
    weight = [s.offered * s.variability for s in stations]
    blocked, waiting, heap = [], [], []
    for i, (a, k) in enumerate(zip(offered, replicas, strict=True)):
        now = erlang_b(k, a)
        after = a * now / (k + 1 + a * now)
        waiting.append(weight[i] * waiting_share(after, k + 1, a) / (k + 1 - a))
        blocked.append(after)
        heap.append((waiting[i] - weight[i] * waiting_share(now, k, a) / (k - a), i))
    held = sum(
        w - g for w, (g, _) in zip(waiting, heap, strict=True)
    )  # before heapify: in the order of the stations
    goal = (target_s - network.service_s) * network.load
    slack = 1e-12 * max(1.0, abs(target_s) * network.load) if math.isfinite(goal) else 0.0
    heapify(heap)
    for _ in repeat(None) if extra is None else repeat(None, extra):
        if held <= goal + slack:
            break
        gain, i = heap[0]
        if extra is None and gain >= 0:
            raise Infeasible(
                f"a mean latency of {target_s * 1e3:.3f} ms cannot be met: service alone takes as "
                "long"
            )
        replicas[i] += 1
        held += gain
        k, a = replicas[i] + 1, offered[i]
        carried = a * blocked[i]
        blocked[i] = after = carried / (k + carried)
        wait = weight[i] * after * k / ((k - a * (1.0 - after)) * (k - a))
        heapreplace(heap, (wait - waiting[i], i))
        waiting[i] = wait
    return tuple(replicas)
