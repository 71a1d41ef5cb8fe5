"""Foretide's own planner: a share of the events within a latency target, at the least cost.

It plans for the moment when what it asks for will work. Per step:

1. The rate to be ready for then. With little history: between the expected rate (where capacity
   comes at once, no more than the average of late) and its upper quantile, at the level that the
   measured share of events in time moves (``promise.level``); where the target allows events to
   wait longer than capacity takes to come, what comes unseen is nothing; in micro-batches a
   foreseen burst is spread over what may wait (``promise.due``). With enough history: once in a
   slow window, rules are replayed on the load as it came, and those that would have kept the
   promise at the least cost decide together (``promise.experience``, ``promise.rehearsal``); the
   level says how much lateness they may allow themselves.
2. The least replicas whose waiting times keep the share at that rate (``promise.tail``); what
   rules ask for is rounded for all operators together (``promise.stairs``).
3. Never less than works off the queue that will be there when it works; where capacity comes at
   once, what is due before the next plan (``promise.due``). What is on its way is not called off
   while a queue lasts.
4. Without rules, the cheapest way through the needs of the horizon (lead time and break-even
   time); what is idle stays until it has cost as much as stopping and starting it, unless a
   forecast that proved right sees no use for it in that time. Rules hold what they asked for as
   long as paid best, and keep what would be started again soon (``promise.again``).
5. Never more than adds something (``promise.limits``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import Array, Forecast, Plan, Prices
from foretide.plan.optimum import lead_windows, optimal_schedule, priced
from foretide.plan.promise.again import wanted_again
from foretide.plan.promise.choices import choices, in_words
from foretide.plan.promise.experience import MEMORY, TICK_S, Experience
from foretide.plan.promise.level import Level
from foretide.plan.promise.limits import MAXIMUM, most_useful
from foretide.plan.promise.measured import measure
from foretide.plan.promise.outlook import Outlook, View
from foretide.plan.promise.pending import Pending
from foretide.plan.promise.rehearsal import LATE_PRICE
from foretide.plan.promise.terms import Terms
from foretide.topology import Topology

BEYOND = 1.25
"""The highest level: beyond the forecast's upper quantile by a quarter of its distance from the
mean.
"""
IN_REACH = 4.0
"""The highest level where capacity comes at once and events are served one by one: the promise can
be kept there, so that what was late is owed for longer.
"""


class Foretide:
    """``share`` of the events within ``target_s`` seconds at the least cost by ``prices``; the
    other settings are those of ``promise.terms``.
    """

    def __init__(
        self,
        target_s: float = 5.0,
        share: float = 0.99,
        prices: Prices | Mapping[str, float] | None = None,
        slack: float = 0.8,
        quantile: float = 0.98,
        usual: float = 0.5,
        drain: float = 1.5,
        late_price: float = LATE_PRICE,
    ) -> None:
        self.terms = Terms(
            target_s, share, priced(prices), slack, quantile, usual, drain, late_price
        )
        self.level = Level(share, most=IN_REACH)
        self._pending = Pending()
        self._wanted: deque[tuple[float, Array]] = deque(maxlen=10_000)
        self.experience = Experience(self.terms)

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        latest = history.latest
        self.experience.past.begin(history)
        seen = measure(topology, history)
        lead = lead_windows(latest.lead_s, latest.window_s)
        self.level.most = BEYOND if lead or seen.batches else IN_REACH
        if latest.latency is not None:
            self.level.see(latest.latency.count, latest.latency.within)
        level = min(self.level.value, self.level.most)
        mean, upper = self._rates(topology, history, forecasts, lead)
        outlook = Outlook(
            self.terms,
            self.experience,
            View(topology, history, seen, self._pending, level, lead, mean, upper),
        )
        coming = np.array([self._pending.total(n, history.now) for n in topology.names])
        wanted = np.maximum(outlook.need[0], outlook.floor)
        asked = seen.running + coming
        held = np.maximum(wanted, np.where(outlook.behind, asked, 0.0))
        if outlook.learned:
            held = self._kept(history, held, wanted, seen.running)
        else:
            held = self._held(history, held, outlook, asked)
        replicas, reasons = {}, {}
        for i, name in enumerate(topology.names):
            operator = topology[name]
            most, limit = most_useful(operator, history, held[i])
            replicas[name] = int(min(max(held[i], operator.min_replicas), max(most, 1)))
            reasons[name] = outlook.reason(i, int(wanted[i]), replicas[name])
            if wanted[i] > most:
                reasons[name] += (
                    f"; limited to {most}, its maximum"
                    if limit == MAXIMUM
                    else f"; limited to {most}: more than {limit} adds nothing"
                )
            self._pending.ask(
                name,
                int(seen.running[i]),
                replicas[name],
                history.now + (latest.lead_s or 0.0),
            )
        if doubt := self.experience.past.doubt(history.now):
            reasons[""] = doubt
        learned = self.experience.news(history.now)
        if learned is None:
            return Plan(replicas, reasons)
        reasons[""] = in_words(learned.rules, self.terms)
        if learned.season and learned.follows_season:
            season_s = learned.season * history.window_s
            reasons[""] += f"; the load repeats every {season_s:,.0f} s, which they follow"
        return Plan(replicas, reasons, choices=choices(learned.rules, self.terms.share))

    def _rates(
        self,
        topology: Topology,
        history: History,
        forecasts: Mapping[str, Forecast],
        lead: int,
    ) -> tuple[Array, Array]:
        """Events/s offered to every operator from outside, expected and upper: rows are windows."""
        missing = [n for n in topology.sources if n not in forecasts]
        if missing:
            raise NotReady(f"no forecast for {', '.join(missing)}: every source needs one")
        steps = max(min(f.horizon for f in forecasts.values()), lead + 1)
        mean = np.zeros((steps, len(topology.names)))
        upper = np.zeros_like(mean)
        place = {n: i for i, n in enumerate(topology.names)}
        for name in topology.sources:
            ahead = forecasts[name]
            rates = np.array(ahead.mean)
            high = np.array(ahead.upper) if ahead.upper is not None else rates
            mean[:, place[name]] = _filled(rates, steps)
            upper[:, place[name]] = _filled(high, steps)
        return mean, upper

    def _remember(self, history: History, wanted: Array) -> list[tuple[float, Array]]:
        """Note what is wanted now; what was wanted lately, and when."""
        lead_s, window_s = history.latest.lead_s or 0.0, history.window_s
        memory_s = max(MEMORY * self.terms.prices.break_even_s, lead_s, window_s)
        while self._wanted and self._wanted[0][0] <= history.now - memory_s + TICK_S:
            self._wanted.popleft()
        self._wanted.append((history.now, wanted))
        return [(at, w) for at, w in self._wanted if len(w) == len(wanted)]

    def _kept(self, history: History, held: Array, wanted: Array, running: Array) -> Array:
        """What rules ask for, and of what runs whatever would be started again soon: rules know the
        price of changes at the level at which most of the load came, and for one operator.
        """
        known, keep_s = self._remember(history, wanted), self.terms.prices.break_even_s
        recent = sum(at > history.now - keep_s - TICK_S for at, _ in known)
        idle = np.flatnonzero(running > held)
        if idle.size:
            past = np.array([w[idle] for _, w in known])
            again = wanted_again(past, max(1, recent), keep_s / history.window_s)
            held[idle] = np.maximum(held[idle], np.minimum(running[idle], again))
        return held

    def _held(self, history: History, wanted: Array, outlook: Outlook, asked: Array) -> Array:
        """Replicas after the price of changes: the cheapest way through the horizon, and idle ones
        stay until they have cost as much as a restart.
        """
        window_s, keep_s = history.window_s, self.terms.prices.break_even_s
        lead_s = history.latest.lead_s or 0.0
        known = self._remember(history, outlook.need[0])  # a queue is not waited for again
        past = np.array([w for _, w in known])
        often = np.quantile(past, max(0.0, 1.0 - window_s / keep_s), axis=0, method="higher")
        recent = past[[at > history.now - keep_s - TICK_S for at, _ in known]].max(axis=0)
        late_s = min(keep_s, lead_s)
        late = past[[at > history.now - late_s - TICK_S for at, _ in known]].max(axis=0)
        held = np.maximum(wanted, np.minimum(asked, late))
        idle = np.minimum(np.minimum(often, recent), outlook.most_foreseen)
        held = np.maximum(held, np.minimum(outlook.seen.running, idle))
        prices = self.terms.prices.per_window(history.window_s)
        for i in np.flatnonzero(
            (outlook.need[1:].max(axis=0, initial=0.0) > held) & (asked > held)
        ):
            way = optimal_schedule(
                np.maximum(outlook.need[:, i], 1).astype(np.int64), prices, int(asked[i])
            )
            held[i] = max(held[i], min(asked[i], way[0]))
        return np.asarray(held)

    def remember(self, past: Array) -> None:
        self.experience.past.remember(past)

    def state(self) -> dict[str, Any]:
        """The level, so that a restarted run is as cautious as it was, and what was wanted lately,
        so that it holds what it held.
        """
        wanted = [[at, w.tolist()] for at, w in self._wanted]
        return {**self.level.state(), "wanted": wanted}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.level.restore(state)
        self._wanted.clear()
        for at, wanted in state.get("wanted", ()):
            self._wanted.append((float(at), np.array(wanted, dtype=float)))


def _filled(values: Array, steps: int) -> Array:
    """The first ``steps`` values, the last one repeated where there are fewer."""
    return np.concatenate([values[:steps], np.full(max(0, steps - len(values)), values[-1])])
