"""DRS's network where operators work in micro-batches: how long an event stays in each of them.

An operator starts a batch every ``I`` seconds with the ``n = rate * I`` events that came meanwhile.
With k replicas and service time s (squared variation scv):

    batch    B(k) = fixed + per_task * k + s * (max(1, n/k + (k - 1)/2k) + z * sqrt(scv * n/k))
    interval I(k) = max(pace, B(k))            batches that overrun follow each other at once
    sojourn  T(k) = wait + (I(k) - pace) / 2 + B(k)

``(k - 1)/2k`` is what dealing whole events to k replicas costs on average; ``z`` is how far the
slowest of k replicas lies above the mean (Blom's approximation of the largest of k normals).
``wait`` is the measured time until a batch starts while batches keep the pace: half the trigger at
a source, little behind an edge. Replicas help as long as a batch holds more events than there are
replicas; what remains is the pace and the fixed cost, which no replica shortens.

Pure. ``processors`` holds the same two questions for queues that serve one event at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from foretide.errors import Infeasible, InvalidRecord
from foretide.plan.queueing import network_sojourn_s

AHEAD = 8
"""Replicas that are looked ahead: whole events per replica make the gain of a single one uneven."""
NEAR = 1.05
"""An allocation this near the best one is as good where the target cannot be met."""
LONGEST_S = 1e6


def slowest(k: int) -> float:
    """Standard deviations by which the largest of ``k`` normal values exceeds the mean.

    >>> slowest(1), round(slowest(4), 2)
    (0.0, 1.05)
    """
    return 0.0 if k <= 1 else NormalDist().inv_cdf((k - 0.375) / (k + 0.25))


@dataclass(frozen=True, slots=True)
class BatchStation:
    """One operator. ``pace_s`` is the shortest time between two batches, ``wait_s`` the mean wait
    for a batch to start at that pace; replicas beyond ``most`` add nothing.

    >>> station = BatchStation(40.0, 0.05, pace_s=1.0, wait_s=0.5, fixed_s=0.4)
    >>> round(station.batch_s(4), 3), round(station.sojourn_s(4), 3), station.sojourn_s(2)
    (0.919, 1.419, inf)
    """

    rate: float
    service_time_s: float
    pace_s: float
    wait_s: float
    fixed_s: float
    per_task_s: float = 0.0
    scv: float = 0.0
    most: int = 10_000

    def __post_init__(self) -> None:
        figures = (self.rate, self.service_time_s, self.pace_s, self.wait_s, self.fixed_s)
        if not all(math.isfinite(v) and v >= 0 for v in (*figures, self.per_task_s, self.scv)):
            raise InvalidRecord(f"{self}: every figure of a station must be finite and >= 0")

    @property
    def offered(self) -> float:
        """Replicas that the rate keeps busy (erlangs)."""
        return self.rate * self.service_time_s

    @property
    def least(self) -> int:
        """The fewest replicas that keep up."""
        return math.floor(self.offered) + 1

    def interval_s(self, k: int) -> float:
        """Seconds between two batches on ``k`` replicas; infinite when they cannot keep up.

        Batches that overrun the pace solve ``I = c + a I / k + b sqrt(I)``.
        """
        left = 1.0 - self.offered / k
        if left <= 0:
            return math.inf
        s = self.service_time_s
        c = self.fixed_s + self.per_task_s * k + s * (k - 1) / (2 * k)
        b = s * slowest(k) * math.sqrt(self.scv * self.rate / k)
        root = (b + math.sqrt(b * b + 4 * left * c)) / (2 * left)
        return max(self.pace_s, root * root, self.batch_of_s(k, 0.0))

    def batch_of_s(self, k: int, events: float) -> float:
        """How long a batch of so many events takes on ``k`` replicas."""
        share = events / k
        rounds = max(1.0, share + (k - 1) / (2 * k))
        varied = slowest(k) * math.sqrt(self.scv * share)
        return self.fixed_s + self.per_task_s * k + self.service_time_s * (rounds + varied)

    def batch_s(self, k: int) -> float:
        """How long a batch takes on ``k`` replicas."""
        interval_s = self.interval_s(k)
        return interval_s if math.isinf(interval_s) else self.batch_of_s(k, self.rate * interval_s)

    def sojourn_s(self, k: int) -> float:
        """Mean seconds from an event's arrival here to the end of its batch."""
        interval_s = self.interval_s(k)
        if interval_s > LONGEST_S:
            return math.inf
        stretched = (interval_s - self.pace_s) / 2
        return self.wait_s + stretched + self.batch_of_s(k, self.rate * interval_s)


@dataclass(frozen=True)
class BatchNetwork:
    """Operators in micro-batches, and the load from outside in events/s."""

    stations: tuple[BatchStation, ...]
    load: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.load) and self.load > 0):
            raise InvalidRecord(f"a network's load is {self.load}: it must be > 0 events/s")

    def sojourn_s(self, replicas: Sequence[int]) -> float:
        """Mean seconds an event and all that came of it spend in the network; infinite when some
        operator cannot keep up.
        """
        times = [s.sojourn_s(k) for s, k in zip(self.stations, replicas, strict=True)]
        return network_sojourn_s([s.rate for s in self.stations], times, self.load)

    @property
    def least(self) -> int:
        return sum(s.least for s in self.stations)

    def assign(self, total: int) -> tuple[int, ...]:
        """The best use of ``total`` replicas: each further one goes where it shortens the sum of
        sojourns most; those that would shorten nothing go where they harm least.

        >>> slow = BatchStation(40.0, 0.1, pace_s=1.0, wait_s=0.5, fixed_s=0.4)
        >>> fast = BatchStation(40.0, 0.01, pace_s=1.0, wait_s=0.5, fixed_s=0.4)
        >>> BatchNetwork((slow, fast), load=40.0).assign(10)
        (8, 2)
        """
        if self.least > total:
            raise Infeasible(
                f"{total} replicas cannot keep up with {self.load:.1f} events/s: at least "
                f"{self.least} are needed ({':'.join(str(s.least) for s in self.stations)})"
            )
        return self._grown(lambda replicas: sum(replicas) >= total, idle_too=True)

    def fewest(self, target_s: float) -> tuple[int, ...]:
        """The fewest replicas with a mean sojourn of ``target_s`` at most; raises Infeasible with
        what stands in the way.
        """
        replicas = self._grown(lambda k: self.sojourn_s(k) <= target_s)
        if self.sojourn_s(replicas) > target_s:
            raise Infeasible(self._obstacle(target_s, replicas))
        return replicas

    def nearly_best(self) -> tuple[int, ...]:
        """The fewest replicas beyond which little gets faster."""
        return self.fewest(NEAR * self.sojourn_s(self._grown(lambda replicas: False)))

    def _grown(
        self, enough: Callable[[Sequence[int]], bool], idle_too: bool = False
    ) -> tuple[int, ...]:
        """Greedy growth from what keeps up until it is enough, or until no replica helps."""
        replicas = [min(max(1, s.least), max(s.most, s.least)) for s in self.stations]
        while not enough(replicas):
            gains = [self._gain(s, k) for s, k in zip(self.stations, replicas, strict=True)]
            best = max(range(len(gains)), key=gains.__getitem__)
            if gains[best] <= 1e-9 and not idle_too:
                break
            if gains[best] == -math.inf:
                break
            replicas[best] += 1
        return tuple(replicas)

    def _gain(self, station: BatchStation, k: int) -> float:
        """What the next replicas shorten per replica, looked ahead."""
        most = min(station.most, k + AHEAD)
        now = station.rate * station.sojourn_s(k)
        gains = [
            (now - station.rate * station.sojourn_s(k + j)) / j for j in range(1, most - k + 1)
        ]
        return max(gains, default=-math.inf)

    def _obstacle(self, target_s: float, replicas: Sequence[int]) -> str:
        def each(figure: Callable[[BatchStation, int], float]) -> float:
            figures = [figure(s, k) for s, k in zip(self.stations, replicas, strict=True)]
            return network_sojourn_s([s.rate for s in self.stations], figures, self.load)

        waits = each(lambda s, k: s.wait_s)
        fixed = each(lambda s, k: s.fixed_s + s.per_task_s * k)
        work = self.sojourn_s(replicas) - waits - fixed
        return (
            f"No number of replicas can meet {target_s:g} s: of the {self.sojourn_s(replicas):.1f} "
            f"s that remain at best, {waits:.1f} s are waiting for batches to start, {fixed:.1f} s "
            f"their fixed cost and {work:.1f} s work; shorten the trigger, put operators together "
            "or relax the target"
        )
