"""Speed-up: what replicas really added, measured while work was waiting.

Owns the one definition of measured throughput per number of replicas that the effect guard and
planners use. Replicas that share something full (cores, a locked table, a rate limit behind them)
are busy and add nothing; a service time alone does not show that, and a planner that trusts it asks
for more and more. Pure: a history in, numbers out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foretide.history import History
from foretide.model import Sample

MEMORY = 60
"""Windows that count, newest first: what was measured before may no longer hold."""
ENOUGH = 2
"""Settled windows that a number of replicas needs before it is judged ..."""
KEPT = 3
"""... and how many of the newest windows are averaged."""
LEAST_GAIN = 0.1
"""Replicas that raise the throughput by less than this part add nothing."""
WORSE = 0.9
"""Throughput below this part of what fewer replicas reached is worse, not noise."""
BUSY = 0.5
"""Replicas that were busy for less than this part of a window did not show what they can do."""
STEP = 1.5
"""Two numbers of replicas are compared for gain when one is this many times the other."""

ALIKE = 0.2
"""Loads that differ by less than this part are the same load ..."""
LATER = 1.5
"""... under which events that take this many times as long ..."""
LATE_S = 0.5
"""... and this many seconds longer are slower, not noise."""


@dataclass(frozen=True, slots=True)
class Full:
    """Events/s that ``replicas`` processed while more work waited than they could do; ``settled``
    windows of that kind were seen.
    """

    replicas: int
    rate: float
    settled: int


@dataclass(frozen=True, slots=True)
class Ceiling:
    """``best`` replicas process as many events as ``tried`` did, or more."""

    best: Full
    tried: Full

    @property
    def expected(self) -> float:
        """Events/s that ``tried`` replicas would process if each added as much as the best ones."""
        return self.best.rate * self.tried.replicas / self.best.replicas

    def __str__(self) -> str:
        more = "less than" if self.tried.rate < WORSE * self.best.rate else "no more than"
        return (
            f"{self.tried.replicas} replicas process {more} {self.best.replicas} did "
            f"({self.tried.rate:.0f} and {self.best.rate:.0f} events/s, {self.expected:.0f} were "
            "expected): something they share is full"
        )


def full_throughput(history: History, name: str, memory: int = MEMORY) -> Mapping[int, Full]:
    """Measured throughput by number of replicas, from windows that left a window's worth of work or
    more undone. ``settled`` counts those that had as much to do at their start and the same
    replicas all along; one that lost replicas on the way is not measured at all.
    """
    rates: dict[int, list[float]] = {}
    settled: dict[int, int] = {}
    before: Sample | None = None
    for snapshot in history.recent(memory):
        sample = snapshot.samples[name]
        fewer = before is not None and before.replicas > sample.replicas
        left = sample.backlog >= max(sample.processed, 1.0)
        if sample.replicas and not fewer and left and _at_work(sample, snapshot.window_s):
            same = before is not None and before.replicas == sample.replicas
            steady = same and before is not None and before.backlog >= sample.processed
            if steady and not settled.get(sample.replicas):
                rates[sample.replicas] = []  # the window of the change says less than these
            if steady or not settled.get(sample.replicas):
                rates.setdefault(sample.replicas, []).append(_rate(sample, snapshot.window_s))
            settled[sample.replicas] = settled.get(sample.replicas, 0) + steady
        before = sample
    return {
        r: Full(r, sum(newest := found[-KEPT:]) / len(newest), settled[r])
        for r, found in rates.items()
    }


def _rate(sample: Sample, window_s: float) -> float:
    """Events/s of the batches one by one where they are known: whether one of them or two ended in
    a window is chance. Else of the window, or of the longer time that the replicas were busy for
    what ended in it: part of a long batch is counted where it ends.
    """
    seconds = sum(run.duration_s for run in sample.batch_runs)
    if seconds > 0:
        return sum(run.events for run in sample.batch_runs) / seconds
    return sample.processed / max(window_s, (sample.busy_s or 0.0) / sample.replicas)


def _at_work(sample: Sample, window_s: float) -> bool:
    """Whether the window shows what the replicas can do. One in which nothing ended, no batch and
    no part of one, does not, nor one in which they were idle half of the time: between batches, or
    while tasks waited to start.
    """
    if sample.batches == 0 and not (sample.processed and sample.busy_s):
        return False
    return sample.busy_s is None or sample.busy_s >= BUSY * sample.replicas * window_s


def ceiling(history: History, name: str, memory: int = MEMORY) -> Ceiling | None:
    """The smallest number of replicas that no larger one beat, and the largest one tried; None
    while nothing of the kind was measured. Larger ones need settled windows: at the smaller one any
    window will do, since it can only show too little.

    An event that has become dearer looks the same at first. Where that is so the smaller number is
    measured again at the new cost, and the ceiling goes.
    """
    full = sorted(full_throughput(history, name, memory).values(), key=lambda f: f.replicas)
    for i, best in enumerate(full):
        more = [f for f in full[i + 1 :] if f.settled >= ENOUGH]
        if not more or max(f.rate for f in more) >= (1 + LEAST_GAIN) * best.rate:
            continue
        if more[-1].replicas >= STEP * best.replicas or more[-1].rate < WORSE * best.rate:
            return Ceiling(best, more[-1])
    return None


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds that an event spent at an operator with ``replicas`` while ``rate`` events/s came."""

    replicas: int
    rate: float
    sojourn_s: float


@dataclass(frozen=True, slots=True)
class Slower:
    """Events took longer with ``tried`` replicas than with fewer of them under the same load."""

    best: Pace
    tried: Pace

    def __str__(self) -> str:
        return (
            f"events take {self.tried.sojourn_s:.1f} s with {self.tried.replicas} replicas and "
            f"took {self.best.sojourn_s:.1f} s with {self.best.replicas}: the change is taken back"
        )


def slower(history: History, name: str, memory: int = MEMORY) -> Slower | None:
    """A number of replicas with which events took longer than with fewer under the same load; None
    when there is none. Each needs ``KEPT`` settled windows, and its newest ones count.
    """
    windows: dict[int, list[tuple[float, float]]] = {}
    before: Sample | None = None
    for snapshot in history.recent(memory):
        sample = snapshot.samples[name]
        if before is not None and before.replicas == sample.replicas and sample.sojourn_s:
            rate = sample.arrived / snapshot.window_s
            windows.setdefault(sample.replicas, []).append((rate, sample.sojourn_s))
        before = sample
    paces = [
        Pace(r, sum(a for a, _ in seen[-KEPT:]) / KEPT, sum(s for _, s in seen[-KEPT:]) / KEPT)
        for r, seen in sorted(windows.items())
        if len(seen) >= KEPT
    ]
    for i, best in enumerate(paces):
        for tried in paces[i + 1 :]:
            alike = abs(tried.rate - best.rate) <= ALIKE * best.rate
            late_s = tried.sojourn_s - best.sojourn_s
            if alike and late_s > max(LATE_S, (LATER - 1) * best.sojourn_s):
                return Slower(best, tried)
    return None


def useful(history: History, name: str, most: int) -> int:
    """Replicas up to ``most`` that measured speed-up says are worth having."""
    limits = [found.best.replicas for found in verdicts(history, name)]
    return min([most, *limits])


def verdicts(history: History, name: str, memory: int = MEMORY) -> list[Ceiling | Slower]:
    """What is known against more replicas of an operator: each says why as a sentence."""
    found = ceiling(history, name, memory), slower(history, name, memory)
    return [verdict for verdict in found if verdict is not None]
