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

from foretide.errors import InvalidConfig, NotReady
from foretide.history import History
from foretide.model import Array, Forecast, Plan, Prices
from foretide.plan.optimum import lead_windows, optimal_schedule, priced
from foretide.plan.promise.again import wanted_again
from foretide.plan.promise.due import carried, due_work, evened, stretch
from foretide.plan.promise.experience import MEMORY, RECENT, TICK_S, Experience, Horizon
from foretide.plan.promise.level import Level
from foretide.plan.promise.limits import MAXIMUM, most_useful
from foretide.plan.promise.measured import Measured, measure
from foretide.plan.promise.pending import Pending
from foretide.plan.promise.stairs import whole
from foretide.plan.promise.tail import MOST_BUSY, for_batches, for_tail
from foretide.topology import Topology

BEYOND = 1.25
"""The highest level: beyond the forecast's upper quantile by a quarter of its distance from the
mean.
"""
IN_FLIGHT = 2
"""Windows whose events may still be on their way through the operators."""
IN_BATCHES = 0.25
"""The part of a delay that a queue may plan with in micro-batches: an event waits for the batch
before its own and then for the whole of its own, and batches are longer at other operators too.
"""
TOGETHER = 4
"""Windows of lead time from which on what rules ask for is rounded for all operators together: with
less, what is missing is there soon, and margins are smaller than what rounding may move.
"""
SETTLED = 8
"""Windows over which the load is averaged where capacity comes at once: what comes beyond may wait,
and is asked for when it is due.
"""


class Foretide:
    """``share`` of the events within ``target_s`` seconds at the least cost by ``prices``.

    ``slack`` is the part of the target that waiting may plan to use; the rest is for what no model
    foresees. ``quantile`` is that of the forecast's upper bound. A queue longer than ``usual``
    times that part of the target is worked off within ``drain`` targets, beside what arrives.
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
    ) -> None:
        if not target_s > 0:
            raise InvalidConfig(f"target_s {target_s:g}: a latency target is more than 0 seconds")
        if not 0 < share < 1:
            raise InvalidConfig(f"share {share:g}: promise a share between 0 and 1, such as 0.99")
        if not 0 < slack <= 1:
            raise InvalidConfig(f"slack {slack:g}: need 0 < slack <= 1")
        self.target_s, self.share, self.slack, self.quantile = target_s, share, slack, quantile
        self.usual, self.drain = usual, drain
        self.prices = priced(prices)
        self.level = Level(share, most=BEYOND)
        self._pending = Pending()
        self._wanted: deque[tuple[float, Array]] = deque(maxlen=10_000)
        self.experience = Experience(share, self.prices, slack, usual, drain * target_s)

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        latest = history.latest
        if latest.latency is not None:
            self.level.see(latest.latency.count, latest.latency.within)
        seen = measure(topology, history)
        lead = lead_windows(latest.lead_s, latest.window_s)
        mean, upper = self._rates(topology, history, forecasts, lead)
        outlook = _Outlook(self, topology, history, seen, lead, mean, upper)
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
        return Plan(replicas, reasons)

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
        memory_s = max(MEMORY * self.prices.break_even_s, lead_s, window_s)
        while self._wanted and self._wanted[0][0] <= history.now - memory_s + TICK_S:
            self._wanted.popleft()
        self._wanted.append((history.now, wanted))
        return [(at, w) for at, w in self._wanted if len(w) == len(wanted)]

    def _kept(self, history: History, held: Array, wanted: Array, running: Array) -> Array:
        """What rules ask for, and of what runs whatever would be started again soon: rules know the
        price of changes at the level at which most of the load came, and for one operator.
        """
        known, keep_s = self._remember(history, wanted), self.prices.break_even_s
        recent = sum(at > history.now - keep_s - TICK_S for at, _ in known)
        idle = np.flatnonzero(running > held)
        if idle.size:
            past = np.array([w[idle] for _, w in known])
            again = wanted_again(past, max(1, recent), keep_s / history.window_s)
            held[idle] = np.maximum(held[idle], np.minimum(running[idle], again))
        return held

    def _held(self, history: History, wanted: Array, outlook: _Outlook, asked: Array) -> Array:
        """Replicas after the price of changes: the cheapest way through the horizon, and idle ones
        stay until they have cost as much as a restart.
        """
        window_s, keep_s = history.window_s, self.prices.break_even_s
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
        prices = self.prices.per_window(history.window_s)
        for i in np.flatnonzero(
            (outlook.need[1:].max(axis=0, initial=0.0) > held) & (asked > held)
        ):
            way = optimal_schedule(
                np.maximum(outlook.need[:, i], 1).astype(np.int64), prices, int(asked[i])
            )
            held[i] = max(held[i], min(asked[i], way[0]))
        return np.asarray(held)

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


class _Outlook:
    """What the coming windows need, for all operators: ``need[h]`` replicas in the h-th window in
    which capacity asked for now works, ``floor`` to work off what is due, ``most_foreseen`` beyond
    which idle ones are of no use, as far as is known; while more waits than usual, all are.
    """

    def __init__(
        self,
        planner: Foretide,
        topology: Topology,
        history: History,
        seen: Measured,
        lead: int,
        mean: Array,
        upper: Array,
    ) -> None:
        window_s, share = history.window_s, planner.share
        self.history, self.seen, self.lead, self.planner = history, seen, lead, planner
        self.lead_s = history.latest.lead_s
        self.at_once = lead == 0 and not seen.batches
        service_s = np.nan_to_num(seen.service_s)
        through = seen.flow.spread(np.vstack([mean, upper]))
        self.mean, self.upper = through[: len(mean)], through[len(mean) :]
        self.outside = mean
        load = max(float(mean[lead].sum()), 1e-12)
        visits = self.mean[lead] / load
        spare_s = planner.target_s - float(visits @ service_s)
        if seen.batches:
            spare_s -= float(np.nansum(seen.interval_s + seen.fixed_s))
        self.delay = planner.slack * max(0.0, spare_s) / window_s
        unseen = min(1.0, max(0.0, lead + 1 - self.delay))
        self.caution = planner.level.value * unseen
        per_rate = float((visits * service_s).max())
        together = lead >= TOGETHER and per_rate > 0 and not seen.batches
        shares = visits * service_s / per_rate if together else None
        horizon = Horizon(lead, self.delay, per_rate, load, shares)
        ahead = asked = planner.experience.rate(history, horizon, planner.level.value)
        if asked and shares is not None:
            ahead = whole(asked * per_rate, shares) / per_rate
        self.learned = ahead is not None
        self.foreseen = np.zeros(len(service_s))  # what comes faster than is planned for may wait
        self.beside = self.mean  # a burst that is spread is served as planned beside its queue
        self.rates = (
            self.mean * (ahead / load) if ahead is not None else self._guessed(load, visits)
        )
        work = self.rates * service_s
        self.work = work[lead:]
        self.need = np.maximum(1.0, np.ceil(self.work * (1 - 1e-9)))
        least = self.work[0]
        if asked and together:  # whole already: only what is expected needs room for chance
            least = self.mean[lead] * service_s * min(1.0, asked / load)
        rounded = np.ceil(self.work[0] * (1 - 1e-6))
        self.need[0] = np.maximum(self._for_promise(least, visits, spare_s, share), rounded)
        spare = self._plan_backlog(topology, service_s)
        self.most_foreseen = np.full(len(service_s), np.inf)
        if ahead is None:
            most = self._most_foreseen(visits) * service_s
            idle = self._for_promise(most, visits, spare_s, share)
            self.most_foreseen = np.where(spare > 0, np.inf, idle)

    def _guessed(self, load: float, visits: Array) -> Array:
        """The rates to be ready for with little history: between the expected ones and their upper
        quantile; in micro-batches a burst is spread.
        """
        planner, lead = self.planner, self.lead
        shape, enough = stretch(self.history.load(RECENT), self.delay, planner.quantile)
        burst = self.upper * shape
        if np.isfinite(enough) and visits.any():
            burst = np.minimum(burst, visits * enough)
        high = np.maximum(self.mean, burst)
        rates = self._settled(load) * self.mean
        rates += self.caution * (high - rates)
        if self.seen.batches:
            self.foreseen = rates[lead].copy()
            rates[lead:] = carried(rates[lead:], IN_BATCHES * self.delay)
            self.beside = rates
        return np.asarray(rates)

    def _settled(self, load: float) -> float:
        """The load to be ready for, over the forecast ``load``: where capacity comes at once, no
        more than the average of late.
        """
        recent = self.history.load(SETTLED)
        known = recent[np.isfinite(recent)]
        return min(1.0, float(known.mean()) / load) if self.at_once and known.size else 1.0

    def _plan_backlog(self, topology: Topology, service_s: Array) -> Array:
        """``floor``, and where a queue is longer than usual now (``behind``); returns the replicas
        that work off what is beyond the usual when capacity asked for now works.
        """
        planner, seen, history, lead = self.planner, self.seen, self.history, self.lead
        window_s, lead_s = history.window_s, self.lead_s or 0.0
        queue_s = seen.waiting * service_s
        usual = planner.usual * self.delay * window_s * self.rates[lead]
        if seen.batches:  # what waits for its batch to begin is no queue
            usual += seen.flow.spread((self.rates[lead] * np.nan_to_num(seen.interval_s))[None])[0]
        usual_s = usual * service_s
        self.behind = np.full(len(queue_s), lead > 0) & (queue_s > usual_s)
        late_s = np.zeros_like(queue_s)
        if lead:
            until = history.now + lead_s
            pending = [planner._pending.done_by(n, history.now, until) for n in topology.names]
            could_s = seen.running * lead_s + np.array(pending)
            with np.errstate(divide="ignore"):
                could = np.where(service_s > 0, could_s / service_s, np.inf)
            coming = self.outside[:lead].mean(axis=0) * lead_s
            left = seen.flow.left(seen.backlog, coming, could)
            queue_s = seen.flow.spread(left[None])[0] * service_s
        else:
            delay = evened(self.delay, planner.level.value) if self.at_once else self.delay
            due = due_work(seen.waiting, self.mean[0] * window_s, seen.arrived, delay)
            late_s = due * service_s / window_s
        spare = np.maximum(0.0, queue_s - usual_s) / (planner.drain * planner.target_s)
        if self.at_once:  # what is due is enough
            spare = np.zeros_like(spare)
        keeps = self.beside[lead] * service_s + spare
        due_busy = np.maximum(late_s, np.where(spare > 0, keeps, 0.0))
        most_busy = MOST_BUSY if seen.batches else 1.0
        self.floor = np.ceil(due_busy / most_busy * (1 - 1e-9))
        return np.asarray(spare)

    def _most_foreseen(self, visits: Array) -> Array:
        """The highest events/s to be ready for within the horizon: what is expected, times how far
        the load rose above that lately, and what is on its way through the operators; before
        forecasts are proven, what was seen lately.
        """
        planner, history, lead = self.planner, self.history, self.lead
        surprise = planner.experience.surprise(history, lead)
        memory_s = MEMORY * planner.prices.break_even_s if surprise is None else 0.0
        seen = np.nan_to_num(history.load(IN_FLIGHT + int(memory_s / history.window_s))).max()
        expected = self.upper if surprise is None else self.mean * surprise
        return np.asarray(np.maximum(expected[lead:].max(axis=0), seen * visits))

    def _for_promise(self, work: Array, visits: Array, spare_s: float, share: float) -> Array:
        seen = self.seen
        if seen.batches:
            interval_s, fixed_s = np.nan_to_num(seen.interval_s), np.nan_to_num(seen.fixed_s)
            enough = for_batches(work, interval_s, fixed_s, self.planner.target_s)
            return np.maximum(1.0, np.ceil(enough * (1 - 1e-9)))
        spare_s *= self.planner.slack
        return np.maximum(1.0, for_tail(work, seen.scale_s, visits, spare_s, share))

    def reason(self, i: int, wanted: int, replicas: int) -> str:
        """One sentence with the numbers that decided."""
        when = (
            f"in {self.lead_s:.0f} s, when capacity asked for now would work"
            if self.lead_s
            else "next"
        )
        need = int(self.need[0, i])
        text = (
            f"{self.mean[self.lead, i]:.1f} events/s expected {when}, "
            f"{self.upper[self.lead, i]:.1f} at most: "
            f"{'1 replica keeps' if need == 1 else f'{need} replicas keep'} "
            f"{100 * self.planner.share:g} % within {self.planner.target_s:g} s at "
            f"{self.rates[self.lead, i]:.1f} events/s"
        )
        if self.foreseen[i] > 1.1 * self.rates[self.lead, i]:
            text += f"; {self.foreseen[i]:.1f} may come, and what is beyond may wait"
        if self.learned:
            text += ", as the rules ask that kept the promise at the least cost so far"
        waiting = self.seen.waiting[i]
        if self.floor[i] > self.need[0, i]:
            text += f"; {waiting:.0f} events wait and are due: {int(self.floor[i])} replicas"
        elif waiting >= 1:
            text += f"; {waiting:.0f} events wait"
        if replicas > wanted:
            text += (
                f"; {replicas - wanted} idle stay for up to "
                f"{self.planner.prices.break_even_s:.0f} s, cheaper than a restart"
            )
        return text
