"""DRS's network where operators work in micro-batches: how long an event stays in each of them.

An operator starts a batch every ``I`` seconds with the ``n = rate * I`` events that came meanwhile.
With k replicas and service time s (squared variation scv):

    batch    B(k) = fixed + per_task * k + s * max(1, n/k + |(k - 1)/2k, z * sqrt(scv * n/k)|)
    interval I(k) = max(pace, B(k))            batches that overrun follow each other at once
    sojourn  T(k) = wait + (I2(k) - pace) / 2 + B(k) + (s/k) * Var(n) / n

``(k - 1)/2k`` is what dealing whole events to k replicas costs on average; ``z`` is how far the
slowest of k replicas lies above the mean (Blom's approximation of the largest of k normals); the
two are added as the sides of a right angle, since the slowest need not hold the odd event.
``wait`` is the measured time until a batch starts while batches keep the pace: half the trigger at
a source, little behind an edge. Batches differ: ``n`` varies with the arrivals (its variance is
``dispersion`` times its mean, and more where intervals differ), so some batches overrun though the
mean one does not. Mean and variance of n, B (as a normal) and I are iterated until they agree; an
event is more often in a large batch than in a small one, hence ``I2 = E[I^2]/E[I]`` and the last
term. Replicas help as long as a batch holds more events than there are replicas; what remains is
the pace and the fixed cost, which no replica shortens.

Pure. ``processors`` holds the same two questions for queues that serve one event at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import NamedTuple

from foretide.clock import LEAST_EVENTS
from foretide.errors import Infeasible, InvalidRecord
from foretide.plan.queueing import Offered, network_sojourn_s

AHEAD = 4
"""Replicas that are looked ahead: whole events per replica make the gain of a single one uneven."""
NEAR = 1.05
"""An allocation this near the best one is as good where the target cannot be met."""
ROOM = 0.9
"""The largest batches take this part of the time in which their events come at most: nearer to it a
queue builds up before them.
"""
LONGEST_S = 1e6
PASSES = 3
"""How often intervals are passed on along the edges, for loops."""
ROUNDS = 200
"""Iterations in which the moments of batches settle."""


def slowest(k: int) -> float:
    """Standard deviations by which the largest of ``k`` normal values exceeds the mean.

    >>> slowest(1), round(slowest(4), 2)
    (0.0, 1.05)
    """
    return 0.0 if k <= 1 else NormalDist().inv_cdf((k - 0.375) / (k + 0.25))


@dataclass(frozen=True, slots=True)
class BatchStation(Offered):
    """One operator. ``pace_s`` is the shortest time between two batches, ``wait_s`` the mean wait
    for a batch to start at that pace; replicas beyond ``most`` add nothing. A batch holds no more
    than ``span_s`` seconds of every replica's work, so that replicas which need longer batches to
    make up for the fixed cost cannot keep up.

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
    dispersion: float = 0.0
    producers: tuple[int, ...] = ()
    span_s: float = math.inf

    def __post_init__(self) -> None:
        figures = (self.rate, self.service_time_s, self.pace_s, self.wait_s, self.fixed_s)
        if not all(
            math.isfinite(v) and v >= 0
            for v in (*figures, self.per_task_s, self.scv, self.dispersion)
        ):
            raise InvalidRecord(f"{self}: every figure of a station must be finite and >= 0")

    @property
    def least(self) -> int:
        """The fewest replicas that keep up."""
        fewest = math.floor(self.offered) + 1
        while fewest < self.most and not self.keeps_up(fewest):
            fewest += 1
        return fewest

    def keeps_up(self, k: int) -> bool:
        """Whether the largest batches on ``k`` replicas take in more than comes meanwhile."""
        if self.offered >= k or math.isinf(self.span_s) or self.rate == 0.0:
            return self.offered < k
        events = max(float(LEAST_EVENTS), self.span_s * k / max(self.service_time_s, 1e-9))
        return self.batch_of_s(k, events) < ROOM * events / self.rate

    def batch_of_s(self, k: int, events: float) -> float:
        """How long a batch of so many events takes on ``k`` replicas."""
        share = events / k
        above = math.hypot((k - 1) / (2 * k), slowest(k) * math.sqrt(self.scv * share))
        busy_s = self.service_time_s * max(1.0, share + above)
        return self.fixed_s + self.per_task_s * k + busy_s

    def steady(self, k: int) -> Steady:
        """Batches on ``k`` replicas once they have settled."""
        return _steady(self, k)

    def batch_s(self, k: int) -> float:
        """How long a batch takes on ``k`` replicas."""
        return self.steady(k).batch_s

    def interval_s(self, k: int) -> float:
        """Mean seconds between two batches on ``k`` replicas; infinite when they cannot keep up."""
        return self.steady(k).interval_s

    def sojourn_s(self, k: int) -> float:
        """Mean seconds from an event's arrival here to the end of its batch."""
        view = self.steady(k)
        if view.interval_s > LONGEST_S:
            return math.inf
        waited = (view.interval_s + view.interval_var / view.interval_s - self.pace_s) / 2
        crowded = self.service_time_s / k * view.events_var / max(view.events, 1e-9)
        return self.wait_s + waited + view.batch_s + crowded


class Steady(NamedTuple):
    """Batches of one operator: mean length, mean and variance of the time between two and of the
    events in one.
    """

    batch_s: float
    interval_s: float
    interval_var: float
    events: float
    events_var: float


@lru_cache(maxsize=4096)
def _steady(station: BatchStation, k: int) -> Steady:
    """The moments that agree with each other."""
    if not station.keeps_up(k):
        return Steady(math.inf, math.inf, 0.0, math.inf, 0.0)
    s, interval_s, interval_var = station.service_time_s, max(station.pace_s, 1e-3), 0.0
    for _ in range(ROUNDS):
        events = station.rate * interval_s
        events_var = station.dispersion * events + station.rate**2 * interval_var
        batch_s = station.batch_of_s(k, events)
        batch_var = (s / k) ** 2 * events_var + s * s * station.scv * events / k / 2
        before = interval_s
        interval_s, interval_var = _at_least(station.pace_s, batch_s, math.sqrt(batch_var))
        if abs(interval_s - before) <= 1e-4 * before:
            break
        if interval_s > LONGEST_S:
            return Steady(math.inf, math.inf, 0.0, math.inf, 0.0)
    return Steady(batch_s, interval_s, interval_var, events, events_var)


def _at_least(floor: float, mean: float, deviation: float) -> tuple[float, float]:
    """Mean and variance of a normal value that is raised to ``floor``.

    >>> _at_least(1.0, 0.5, 0.0), _at_least(1.0, 2.0, 0.0)
    ((1.0, 0.0), (2.0, 0.0))
    """
    if deviation <= 1e-12:
        return max(floor, mean), 0.0
    z = (floor - mean) / deviation
    below = NormalDist().cdf(z)
    density = NormalDist().pdf(z)
    first = floor * below + mean * (1 - below) + deviation * density
    second = (
        floor**2 * below
        + (mean**2 + deviation**2) * (1 - below)
        + deviation * density * (mean + floor)
    )
    return first, max(0.0, second - first**2)


@dataclass(frozen=True)
class BatchNetwork:
    """Operators in micro-batches, and the load from outside in events/s."""

    stations: tuple[BatchStation, ...]
    load: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.load) and self.load > 0):
            raise InvalidRecord(f"a network's load is {self.load}: it must be > 0 events/s")

    @cached_property
    def _read(self) -> frozenset[int]:
        """The stations that others read."""
        return frozenset(p for s in self.stations for p in s.producers)

    def paced(self, replicas: Sequence[int]) -> list[BatchStation]:
        """The stations at the pace of what they read: behind an edge no batch starts before one of
        a producer has ended, and batches of several producers come in between each other.
        """
        paced = list(self.stations)
        for _ in range(PASSES if any(s.producers for s in paced) else 0):
            intervals = [s.interval_s(k) for s, k in zip(paced, replicas, strict=True)]
            for i, s in enumerate(self.stations):
                rates = [1 / intervals[p] for p in s.producers if 0 < intervals[p] < LONGEST_S]
                if rates:
                    paced[i] = replace(s, pace_s=max(s.pace_s, round(1 / sum(rates), 3)))
        return paced

    def sojourn_s(self, replicas: Sequence[int]) -> float:
        """Mean seconds an event and all that came of it spend in the network; infinite when some
        operator cannot keep up.
        """
        times = [s.sojourn_s(k) for s, k in zip(self.paced(replicas), replicas, strict=True)]
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
        return self.fewest(NEAR * self.best_s)

    @cached_property
    def best_s(self) -> float:
        """The mean sojourn that no replica shortens any more."""
        return self.sojourn_s(self._grown(lambda replicas: False))

    def _grown(
        self, enough: Callable[[Sequence[int]], bool], idle_too: bool = False
    ) -> tuple[int, ...]:
        """Greedy growth from what keeps up until it is enough, or until no replica helps."""
        replicas = [min(max(1, s.least), max(s.most, s.least)) for s in self.stations]
        while not enough(replicas):
            paced = self.paced(replicas)
            gains = [self._gain(replicas, i, paced) for i in range(len(replicas))]
            best = max(range(len(gains)), key=gains.__getitem__)
            if gains[best] <= 1e-9 and not idle_too:
                break
            if gains[best] == -math.inf:
                break
            replicas[best] += 1
        return tuple(replicas)

    def _gain(self, replicas: Sequence[int], i: int, paced: Sequence[BatchStation]) -> float:
        """What the next replicas of an operator shorten per replica, looked ahead. Those of an
        operator that others read change the pace of these too.
        """
        k, station = replicas[i], paced[i]
        steps = range(1, min(AHEAD, station.most - k) + 1)
        if i not in self._read:
            now, weight = station.sojourn_s(k), station.rate / self.load
            gains = [weight * _less(now, station.sojourn_s(k + more)) / more for more in steps]
        else:
            now = self.sojourn_s(replicas)
            grown = [(more, [*replicas[:i], k + more, *replicas[i + 1 :]]) for more in steps]
            gains = [_less(now, self.sojourn_s(each)) / more for more, each in grown]
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


def _less(now: float, then: float) -> float:
    """By how much ``then`` is less; nothing where both are infinite."""
    return 0.0 if math.isinf(now) and math.isinf(then) else now - then
