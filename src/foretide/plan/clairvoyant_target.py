"""The clairvoyant of the promise: the cheapest schedule that keeps a share within a target, from
the load as it will come. Simulator only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import Array, Forecast, Plan, Prices
from foretide.plan.future import Future
from foretide.plan.optimum import (
    Schedule,
    lead_windows,
    priced,
    schedule_cost,
    without_valleys,
)
from foretide.plan.target_optimum import Promise, served, target_optimum
from foretide.topology import Topology
from foretide.wording import percent, plural

FRONT = 0.8
"""Part of the waiting time that a source may plan to use where the others only pass its work on."""
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

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        future = self.future
        if future is None or future.spare_s is None or not future.work:
            raise NotReady(
                "the clairvoyant-target planner needs the future of the load and a latency target: "
                "it runs in the simulator alone"
            )
        window = future.window(history.now)
        lead = lead_windows(history.latest.lead_s, future.window_s)
        if not self.schedules:
            start = {n: max(1, history.replicas(n)) for n in topology.names}
            waiting = {
                n: history.latest.samples[n].backlog * (history.service_time_s(n) or 0.0)
                for n in topology.names
            }
            case = _Case(topology, future, self.prices, window, start, lead, waiting)
            self.schedules = case.cheapest()
            self._begun = window
        at = window - self._begun
        target = {n: int(s[at : at + lead + 1].max()) for n, s in self.schedules.items()}
        reasons = {
            n: f"the cheapest schedule that keeps {percent(future.share)} within the target has "
            f"{plural(r, 'replica')} in window {window}, which keeps "
            f"{future.work[n][window]:.1f} busy"
            for n, r in target.items()
        }
        return Plan(target, reasons)


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

    def cheapest(self) -> dict[str, Schedule]:
        depth = self._depth()
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

    def _depth(self) -> dict[str, int]:
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
            work[0, 0] += self.waiting[n] / future.window_s
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
        """Work that comes to an operator: what enters there, and what the operators before it send
        when they have done it.
        """
        came = self.future.parts(name)[self.window :].copy()
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
