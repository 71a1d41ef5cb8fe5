"""What the coming windows need, for all operators: the rate to be ready for, the replicas that
keep the promise at it, and what works off the queue.

Owns how forecasts, rules and queues become replicas; when what is idle stays is the planner's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foretide.history import History
from foretide.model import Array
from foretide.plan.promise.due import carried, due_work, evened, stretch
from foretide.plan.promise.experience import MEMORY, RECENT, Experience, Horizon
from foretide.plan.promise.measured import Measured
from foretide.plan.promise.pending import Pending
from foretide.plan.promise.stairs import whole
from foretide.plan.promise.tail import MOST_BUSY, for_batches, for_tail
from foretide.plan.promise.terms import Terms
from foretide.topology import Topology

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


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What one step plans from: measurements, replicas on their way, the ``level`` of caution, and
    the events/s offered to every operator from outside, expected and at most (rows are windows).
    Capacity asked for now works in ``lead`` windows.
    """

    topology: Topology
    history: History
    seen: Measured
    pending: Pending
    level: float
    lead: int
    mean: Array
    upper: Array


class Outlook:
    """What the coming windows need, for all operators: ``need[h]`` replicas in the h-th window in
    which capacity asked for now works, ``floor`` to work off what is due, ``most_foreseen`` beyond
    which idle ones are of no use, as far as is known; while more waits than usual, all are.
    """

    def __init__(self, terms: Terms, experience: Experience, view: View) -> None:
        self.terms, self.experience, self.view = terms, experience, view
        self.history, self.seen, self.lead = view.history, view.seen, view.lead
        history, seen, lead, mean, upper = self.history, self.seen, self.lead, view.mean, view.upper
        window_s, share = history.window_s, terms.share
        self.lead_s = history.latest.lead_s
        self.at_once = lead == 0 and not seen.batches
        service_s = np.nan_to_num(seen.service_s)
        through = seen.flow.spread(np.vstack([mean, upper]))
        self.mean, self.upper = through[: len(mean)], through[len(mean) :]
        self.outside = mean
        load = max(float(mean[lead].sum()), 1e-12)
        visits = self.mean[lead] / load
        spare_s = terms.target_s - float(visits @ service_s)
        if seen.batches:
            spare_s -= float(np.nansum(seen.interval_s + seen.fixed_s))
        self.delay = terms.slack * max(0.0, spare_s) / window_s
        unseen = min(1.0, max(0.0, lead + 1 - self.delay))
        self.caution = view.level * unseen
        per_rate = float((visits * service_s).max())
        together = lead >= TOGETHER and per_rate > 0 and not seen.batches
        shares = visits * service_s / per_rate if together else None
        queue = IN_BATCHES * self.delay if seen.batches else self.delay
        horizon = Horizon(lead, queue, per_rate, load, shares)
        ahead = asked = experience.rate(history, horizon, view.level)
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
        spare = self._plan_backlog(service_s)
        self.most_foreseen = np.full(len(service_s), np.inf)
        if ahead is None:
            most = self._most_foreseen(visits) * service_s
            idle = self._for_promise(most, visits, spare_s, share)
            self.most_foreseen = np.where(spare > 0, np.inf, idle)

    def _guessed(self, load: float, visits: Array) -> Array:
        """The rates to be ready for with little history: between the expected ones and their upper
        quantile; in micro-batches a burst is spread.
        """
        lead = self.lead
        shape, enough = stretch(self.history.load(RECENT), self.delay, self.terms.quantile)
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

    def _plan_backlog(self, service_s: Array) -> Array:
        """``floor``, and where a queue is longer than usual now (``behind``); returns the replicas
        that work off what is beyond the usual when capacity asked for now works.
        """
        terms, seen, history, lead = self.terms, self.seen, self.history, self.lead
        window_s, lead_s = history.window_s, self.lead_s or 0.0
        queue_s = seen.waiting * service_s
        usual = terms.usual * self.delay * window_s * self.rates[lead]
        if seen.batches:  # what waits for its batch to begin is no queue
            usual += seen.flow.spread((self.rates[lead] * np.nan_to_num(seen.interval_s))[None])[0]
        usual_s = usual * service_s
        self.behind = np.full(len(queue_s), lead > 0) & (queue_s > usual_s)
        late_s = np.zeros_like(queue_s)
        if lead:
            until = history.now + lead_s
            names, pending = self.view.topology.names, self.view.pending
            coming_s = [pending.done_by(n, history.now, until) for n in names]
            could_s = seen.running * lead_s + np.array(coming_s)
            with np.errstate(divide="ignore"):
                could = np.where(service_s > 0, could_s / service_s, np.inf)
            coming = self.outside[:lead].mean(axis=0) * lead_s
            left = seen.flow.left(seen.backlog, coming, could)
            queue_s = seen.flow.spread(left[None])[0] * service_s
        else:
            delay = evened(self.delay, self.view.level) if self.at_once else self.delay
            due = due_work(seen.waiting, self.mean[0] * window_s, seen.arrived, delay)
            late_s = due * service_s / window_s
        spare = np.maximum(0.0, queue_s - usual_s) / terms.drain_s
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
        history, lead = self.history, self.lead
        surprise = self.experience.surprise(history, lead)
        memory_s = MEMORY * self.terms.prices.break_even_s if surprise is None else 0.0
        seen = np.nan_to_num(history.load(IN_FLIGHT + int(memory_s / history.window_s))).max()
        expected = self.upper if surprise is None else self.mean * surprise
        return np.asarray(np.maximum(expected[lead:].max(axis=0), seen * visits))

    def _for_promise(self, work: Array, visits: Array, spare_s: float, share: float) -> Array:
        seen = self.seen
        if seen.batches:
            interval_s, fixed_s = np.nan_to_num(seen.interval_s), np.nan_to_num(seen.fixed_s)
            if self.learned:  # the replay knows no bursts within a window; what was late does
                work = work * max(1.0, self.view.level)
            enough = for_batches(work, interval_s, fixed_s, self.terms.target_s)
            return np.maximum(1.0, np.ceil(enough * (1 - 1e-9)))
        spare_s *= self.terms.slack
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
            f"{100 * self.terms.share:g} % within {self.terms.target_s:g} s at "
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
                f"{self.terms.prices.break_even_s:.0f} s, cheaper than a restart"
            )
        return text
