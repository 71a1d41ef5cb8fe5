"""Account: what a run cost and served so far, window by window.

Owns every figure that can be said while a run goes on: cost, replica time, changes, need covered,
share of events within the target, and the saving against static peak provisioning. Reports feed it
a whole record, the dashboard one window after another; both read the same numbers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from foretide.figures.demand import Routes, WindowArrays
from foretide.model import Array, Prices
from foretide.quantities import change_cost, cost
from foretide.topology import Topology

PROMISED = 0.99
"""The share of events within the target that counts as served where a run promised none."""
MISCOUNT = 2.0
"""By how many windows' arrivals an estimate of a backlog may jump and mean nothing."""


@dataclass(frozen=True, slots=True)
class Promise:
    """``share`` of the events within ``target_s`` seconds; None where the run has no target or
    promised no share.
    """

    target_s: float | None = None
    share: float | None = None

    @property
    def least(self) -> float:
        return PROMISED if self.share is None else self.share


class TargetCounts(Protocol):
    """How many events left in a window, and how many of them within the target."""

    @property
    def count(self) -> float: ...

    @property
    def within(self) -> float | None: ...


class Account:
    """Running totals of one run. ``start`` are the replicas before the first window (None: those of
    the first window). With ``shared`` all operators use the same task slots: their replicas are
    counted once and their needs together.

    >>> from foretide.topology import Operator
    >>> account = Account(Topology((Operator("a"),)), Prices(), Promise())
    >>> for replicas, need in ((1.0, 1.0), (2.0, 2.0), (2.0, 1.0)):
    ...     one = np.array([1.0])
    ...     counts = (one, one, 0 * one, replicas * one, one, one, np.zeros(0))
    ...     account.add(WindowArrays(30.0, *counts, dropped=0.0), np.array([need]))
    >>> account.paid, account.peak, account.static_peak
    (45100.0, 2, 48000.0)
    >>> round(account.saved_cost, 3), round(account.saved_replica_time, 3)
    (0.06, 0.167)
    """

    def __init__(
        self,
        topology: Topology,
        prices: Prices,
        promise: Promise,
        start: Array | None = None,
        shared: bool = False,
    ) -> None:
        n, names = len(topology.names), topology.names
        self.prices, self.promise, self.shared = prices, promise, shared
        self.paid = self.changes_paid = self.seconds = self.replica_seconds = 0.0
        self.windows = self.adaptations = 0
        self.counted = self.within = self.dropped = 0.0
        self._ends = [names.index(e) for e in topology.sinks or names]
        caps = np.array([o.max_replicas for o in topology.operators], dtype=float)
        self._caps = caps.max(keepdims=True) if shared else caps
        self._routes = Routes(topology)
        self._processed, self._sent = np.zeros(n), np.zeros(len(topology.edges))
        self._offered, self._due, self._backlog = np.zeros(n), np.zeros(n), np.zeros(n)
        self._recent: deque[tuple[float, Array]] = deque()
        self._grace_s = 0.0
        self._before, self._peak = start, np.full(len(self._caps), np.nan)
        self._needed_s = self._covered_s = 0.0

    def add(self, window: WindowArrays, need: Array, left: TargetCounts | None = None) -> None:
        """One measured window with the replicas that each operator needed (NaN: unknown) and the
        latency of the events that left in it.
        """
        replicas = window.replicas
        if self.shared:
            replicas, need = replicas.max(keepdims=True), need.sum(keepdims=True)
        change = replicas - (replicas if self._before is None else self._before)
        replica_seconds = float(replicas.sum()) * window.seconds
        self.paid += cost(replica_seconds, change, self.prices)
        self.changes_paid += change_cost(change, self.prices)
        self.replica_seconds += replica_seconds
        self.adaptations += bool(np.any(change))
        self.windows += 1
        self.seconds += window.seconds
        self.dropped += window.dropped
        if left is not None and left.within is not None:
            self.counted += left.count
            self.within += left.within
        known = ~np.isnan(need)
        self._needed_s += float(need[known].sum()) * window.seconds
        covered = np.minimum(replicas, need)[known]
        self._covered_s += float(covered.sum()) * window.seconds
        self._peak = np.fmax(self._peak, np.minimum(need, self._caps))
        self._before = replicas
        self._flow(window)

    def _flow(self, window: WindowArrays) -> None:
        """Counts events in and out; those that came longer ago than the target are due. What no
        window counted, because it waited before the first one or came while nothing was measured,
        came at the start of this one.
        """
        missed = window.backlog + window.processed - window.arrived - self._backlog
        usual = MISCOUNT * window.arrived + 10 if self.windows > 1 else 0.0
        if (missed > usual).any():
            self._offered = self._offered + np.where(missed > usual, missed, 0.0)
            self._recent.append((self.seconds - window.seconds, self._offered))
        self._backlog = window.backlog
        self._processed = self._processed + window.processed
        self._sent = self._sent + window.sent
        self._offered = self._offered + window.offered
        self._recent.append((self.seconds, self._offered))
        target_s = self.promise.target_s
        self._grace_s = max(self._grace_s, 2 * window.seconds if target_s is None else target_s)
        while self._recent and self._recent[0][0] <= self.seconds - self._grace_s:
            self._due = self._recent.popleft()[1]

    def should_leave(self, offered: Array) -> float:
        """Events that leave the topology when these enter it, at the run's own selectivities. A
        topology whose every operator feeds another is judged by all its operators.
        """
        reached = self._routes.through(
            offered, self._routes.selectivity(self._processed, self._sent)
        )
        return float(np.nan_to_num(reached[self._ends]).sum())

    @property
    def due(self) -> float:
        """Events that should have left by now: they came longer ago than the target (two windows
        where there is none).
        """
        return self.should_leave(self._due)

    @property
    def overdue(self) -> float:
        """Events that are due and have neither left nor been dropped."""
        late = self.due - float(self._processed[self._ends].sum()) - self.dropped
        return late if late > 0.5 else 0.0

    @property
    def need_share(self) -> float | None:
        """Replica time that ran, of the replica time that the load needed; what ran above the need
        in one window does not make up for another.
        """
        return self._covered_s / self._needed_s if self._needed_s else None

    def slo_share(self, within: float | None = None, left: float | None = None) -> float | None:
        """Events within the target, of those that left, were dropped or are overdue. ``within`` and
        ``left`` replace the windows' counts where they are known exactly.
        """
        if self.promise.target_s is None and not self.counted:
            return None
        early = self.within if within is None else within
        all_events = (self.counted if left is None else left) + self.dropped + self.overdue
        return early / all_events if all_events else None

    @property
    def peak(self) -> int | None:
        """Replicas of all operators at their highest need, within their maximum; None while some
        operator's need is unknown.
        """
        return None if np.isnan(self._peak).any() else int(self._peak.sum())

    @property
    def static_peak(self) -> float | None:
        """What the peak replicas would have cost, all the time and without a change."""
        if self.peak is None:
            return None
        return cost(self.peak * self.seconds, np.zeros(0), self.prices)

    @property
    def saved_cost(self) -> float | None:
        """Cost saved against static peak, starts and stops included; negative when more was paid.
        It says nothing about service: see ``foretide.figures.saving``.
        """
        return None if not self.static_peak else 1.0 - self.paid / self.static_peak

    @property
    def saved_replica_time(self) -> float | None:
        """Replica time saved against the peak replicas all the time; negative when more was used.
        What starts and stops cost is not in it.
        """
        if not self.peak or not self.seconds:
            return None
        return 1.0 - self.replica_seconds / (self.peak * self.seconds)
