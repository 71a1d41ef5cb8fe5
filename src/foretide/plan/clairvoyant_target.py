"""The clairvoyant of the promise: the cheapest schedule that keeps a share within a target, from
the load as it will come. Simulator only.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import Array, Forecast, Plan, Prices
from foretide.plan.fluid import served
from foretide.plan.future import Future
from foretide.plan.optimum import (
    Schedule,
    lead_windows,
    priced,
    schedule_cost,
    without_valleys,
)
from foretide.plan.target_optimum import Promise, target_optimum
from foretide.topology import Topology
from foretide.wording import percent, plural

T = TypeVar("T", float, Array)
FRONT = 0.8
"""Part of the waiting time that a source may plan to use where the others only pass its work on."""
BY_CHANCE = 0.25
"""Part of the waiting time that chance may fill: a longer queue than a fluid would have is worked
off, or it would wait for good where schedules use replicas fully.
"""
CAREFUL = 0.95
"""Part of the waiting time that schedules plan to use: a window's departures are taken as even."""


class ClairvoyantTarget:
    """The cheapest schedules that together keep the promise over the whole future.

    The waits of an event's operators add up, and work that one operator delays comes to the next
    one later than it entered. So the operators are planned upstream first, each for what the ones
    before it send at their schedules, with a part of the waiting time and of the events that may
    be late. Two divisions of the waiting time are tried, and the cheaper one is used: equal parts,
    and ``FRONT`` for the sources, whose queue smooths the load for all others. Around a loop
    each is planned for the load as it came.

    That keeps the promise for a fluid; it knows no chance in a window, so that a run of few slow
    events can be later. The bound that costs are compared with (``bound``) gives every operator the
    whole of both. Capacity asked for in the first window comes after the lead time: until then no
    schedule can have more replicas than run at first.
    """

    def __init__(
        self, future: Future | None = None, prices: Prices | Mapping[str, float] | None = None
    ) -> None:
        self.future, self.prices = future, priced(prices)
        self.schedules: dict[str, Schedule] = {}
        self._extra: dict[str, list[int]] = defaultdict(list)
        self._extra_at: dict[str, float] = {}

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        future = self.future
        if future is None or future.spare_s is None or not future.work:
            raise NotReady(
                "the clairvoyant-target planner needs the future of the load and a latency target: "
                "it runs in the simulator alone"
            )
        window = future.window(history.now)
        lead = lead_windows(history.latest.lead_s, future.window_s)
        waiting = {
            n: history.latest.samples[n].backlog * (history.service_time_s(n) or 0.0)
            for n in topology.names
        }
        if not self.schedules:
            start = {n: max(1, history.replicas(n)) for n in topology.names}
            self._begin(_Case(topology, future, self.prices, window, start, lead, waiting))
        case = self._case
        at = window - case.window
        target = {n: int(s[at : at + lead + 1].max()) for n, s in self.schedules.items()}
        if at:
            behind = case.behind(waiting)
            for n in topology.names:
                beyond_s = behind[n] - self._behind_s[n][at - 1]
                extra = self._by_chance(n, at, target[n], beyond_s, history.now)
                target[n] = min(target[n] + extra, max(target[n], topology[n].max_replicas))
        reasons = {
            n: f"the cheapest schedule that keeps {percent(future.share)} within the target has "
            f"{plural(r, 'replica')} in window {window}, which keeps "
            f"{future.work[n][window]:.1f} busy"
            for n, r in target.items()
        }
        return Plan(target, reasons)

    def _begin(self, case: _Case) -> None:
        self._case, self.schedules = case, case.in_operation()
        self._behind_s = case.behind(case.left_s(self.schedules))
        self._depth = case.depth()
        longest = 1 + max(self._depth.values())
        self._spare_s = max(case.future.spare_s or 0.0, case.future.window_s) / longest

    def _by_chance(self, name: str, at: int, target: int, beyond_s: float, now: float) -> int:
        """Replicas to work off ``beyond_s`` more seconds of work than the schedules leave behind,
        asked for until they work. One of them stays until it has cost as much as a restart, because
        chance comes again, or until the schedule stops some anyway.
        """
        case, asked, schedule = self._case, self._extra[name], self.schedules[name]
        window_s = case.future.window_s
        room_s = BY_CHANCE * self._spare_s * (1 + self._depth[name]) * target
        planned_s = float(self._behind_s[name][at - 1])
        room_s = min(room_s, max(0.0, (case.future.spare_s or 0.0) * target - planned_s))
        on_its_way = asked[len(asked) - case.lead :]
        late_s = beyond_s - room_s - sum(on_its_way) * window_s
        asked.append(max(0, math.ceil(late_s / self._spare_s)))
        extra = max(asked[-1], *on_its_way, 0)
        if extra:
            self._extra_at[name] = now
        elif schedule[at] < schedule[at - 1]:
            self._extra_at.pop(name, None)
        lately = now - self._extra_at.get(name, -math.inf) < self.prices.break_even_s
        return max(extra, int(lately))


@dataclass(frozen=True)
class _Case:
    """What there is to schedule: the future from ``window`` on, begun with ``start`` replicas and
    ``waiting`` seconds of work in the queues.
    """

    topology: Topology
    future: Future
    prices: Prices
    window: int
    start: Mapping[str, int]
    lead: int
    waiting: Mapping[str, float]

    def in_operation(self) -> dict[str, Schedule]:
        """The cheapest schedules, those of the windows that count with a promise of their own."""
        schedules, begins = self.cheapest(), self.future.counted_from - self.window
        if not 0 < begins < min(len(s) for s in schedules.values()):
            return schedules
        left_s = self.left_s(schedules)
        counted = replace(
            self,
            window=self.future.counted_from,
            start={n: int(s[begins - 1]) for n, s in schedules.items()},
            waiting={n: float(s[begins - 1]) for n, s in left_s.items()},
            lead=0,  # known long before
        ).cheapest()
        return {
            n: without_valleys(np.concatenate([s[:begins], counted[n]]), self.lead)
            for n, s in schedules.items()
        }

    def cheapest(self) -> dict[str, Schedule]:
        depth = self.depth()
        longest = 1 + max(depth.values())
        equal = dict.fromkeys(depth, 1.0 / longest)
        ways = [equal]
        if longest > 1 and not self.topology.has_loop:
            rest = (1.0 - FRONT) / (longest - 1)
            ways.append({n: FRONT if not d else rest for n, d in depth.items()})
        each = self.prices.per_window(self.future.window_s)
        found = [self._schedules(parts) for parts in ways]
        return min(
            found,
            key=lambda s: sum(schedule_cost(r, each, self.start[n]) for n, r in s.items()),
        )

    def left_s(self, schedules: Mapping[str, Schedule]) -> dict[str, Array]:
        """Seconds of work that these schedules leave waiting at each operator after each window."""
        done: dict[str, Array] = {}
        left = {}
        for n in self.topology.order:
            work = self._arriving(n, done)
            done[n] = served(work, schedules[n])
            left[n] = np.cumsum((work - done[n]).sum(axis=1)) * self.future.window_s
        return left

    def behind(self, waiting: Mapping[str, T]) -> dict[str, T]:
        """Seconds of work that an operator still has to do for what has entered: what waits for it
        and what it gets from what waits before it. Around a loop only the former.
        """
        if self.topology.has_loop:
            return dict(waiting)
        behind: dict[str, T] = {}
        for n in self.topology.order:
            behind[n] = waiting[n]
            for p in self.topology.predecessors(n):
                behind[n] = behind[n] + self.future.sent.get((p, n), 0.0) * behind[p]
        return behind

    def depth(self) -> dict[str, int]:
        """Operators on the longest way from a source; every operator its own where there is a
        loop.
        """
        names = self.topology.order
        if self.topology.has_loop:
            return {n: i for i, n in enumerate(names)}
        depth: dict[str, int] = {}
        for n in names:
            depth[n] = max((depth[p] + 1 for p in self.topology.predecessors(n)), default=0)
        return depth

    def _schedules(self, parts: Mapping[str, float]) -> dict[str, Schedule]:
        future, prices = self.future, self.prices.per_window(self.future.window_s)
        spare = CAREFUL * max(0.0, future.spare_s or 0.0) / future.window_s
        share = 1.0 - (1.0 - future.share) / len(parts)
        schedules: dict[str, Schedule] = {}
        done: dict[str, Array] = {}
        for n in self.topology.order:
            work = self._arriving(n, done)
            found = target_optimum(
                work,
                Promise(parts[n] * spare, share),
                prices,
                self.start[n],
                self.topology[n].max_replicas,
                lead=self.lead,
            )
            schedules[n] = without_valleys(found.schedule, self.lead)
            schedules[n][: self.lead] = np.minimum(schedules[n][: self.lead], self.start[n])
            done[n] = served(work, schedules[n])
        return schedules

    def _arriving(self, name: str, done: Mapping[str, Array]) -> Array:
        """Work that comes to an operator: what waits there at first, what enters there, and what
        the operators before it send when they have done it.
        """
        came = self.future.parts(name)[self.window :].copy()
        came[0, 0] += self.waiting[name] / self.future.window_s
        for p in self.topology.predecessors(name):
            if not self.topology.has_loop and (p, name) in self.future.sent:
                before = self.future.parts(p)[self.window :]
                came += self.future.sent[p, name] * (done[p] - before)
        return np.maximum(came, 0.0)


def bound(
    future: Future, prices: Prices, start: Mapping[str, int], most: Mapping[str, int]
) -> float | None:
    """No schedule that keeps the promise costs less: the sum over operators, each with the whole
    target, the whole share of late events and no lead time. None without a target.
    """
    if future.spare_s is None or not future.work:
        return None
    promise = Promise(max(0.0, future.spare_s) / future.window_s, future.share)
    each = prices.per_window(future.window_s)
    return sum(
        target_optimum(future.parts(n), promise, each, start[n], most[n]).low for n in future.work
    )
