"""BGElasor's planners: the cost-balance algorithm (CBA) and the simple proactive rule (SPEA). SREA
is ``plan/reactive.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from foretide.errors import InvalidConfig
from foretide.history import History
from foretide.model import Array, Forecast, Plan, Prices, WindowPrices
from foretide.plan.flow import expected_rates
from foretide.plan.need import known_service_time_s, need
from foretide.plan.optimum import Schedule, needs, priced
from foretide.topology import Topology


def cost_balance(
    load: Sequence[float] | Array, capacity: float, prices: WindowPrices, start: int
) -> Schedule:
    """A cheap schedule that covers a load: CBA (BGElasor, algorithm 1).

    ``load`` is in events/s per window, ``capacity`` in events/s of one replica, ``start`` are the
    replicas before the first window. Three steps, none of which raises ``schedule_cost``: follow
    the need, merge re-routings, cancel down-then-up pairs. A heuristic: ``optimal_schedule`` is
    exact. The printed listing has the comparison of step 1 reversed: as printed it would scale up
    when capacity suffices.

    >>> cost_balance([100, 300, 100, 300], capacity=100.0, prices=WindowPrices(), start=1)
    array([1, 3, 3, 3])
    """
    wanted = needs(load, 1.0 / capacity)
    return cancel_pairs(merge_routes(wanted, prices, start), prices, start)


def merge_routes(schedule: npt.ArrayLike, prices: WindowPrices, start: int) -> Schedule:
    """Step 2: put a change into a neighbouring window that re-routes anyway, where a re-routing
    costs more than the replicas.

    An increase of u replicas moves one window earlier when ``p_route > u*p`` and that window
    already changes; a decrease of d moves one window later under the same test with d. Repeats
    while anything moves. Replicas are only ever added, so needs stay covered.
    """
    n = np.array(schedule, dtype=np.int64)
    moved = True
    while moved:
        moved = False
        before = np.concatenate([[start], n])  # before[t] runs in the window that precedes n[t]
        for t in range(len(n) - 1, 0, -1):
            up = n[t] - n[t - 1]
            if up > 0 and n[t - 1] != before[t - 1] and prices.route > up * prices.replica_window:
                n[t - 1], before[t], moved = n[t], n[t], True
        for t in range(len(n) - 1):
            down = before[t] - n[t]
            if down > 0 and n[t + 1] != n[t] and prices.route > down * prices.replica_window:
                n[t], before[t + 1], moved = before[t], before[t], True
    return n


def cancel_pairs(schedule: npt.ArrayLike, prices: WindowPrices, start: int) -> Schedule:
    """Step 3: keep replicas over a valley where stopping and starting them costs more than their
    idling.

    For a decrease whose next change, ``dT`` windows later, is an increase, ``m = min(both)``
    replicas stay when ``(p_down + p_up)*m + p_route > p*m*dT``. Repeats until nothing changes.
    """
    n = np.array(schedule, dtype=np.int64)
    cancelled = True
    while cancelled:
        cancelled = False
        steps = np.diff(n, prepend=start)
        changes = np.flatnonzero(steps)
        for down, up in pairwise(changes):
            if not (steps[down] < 0 < steps[up]):
                continue
            m = min(-steps[down], steps[up])
            if (prices.down + prices.up) * m + prices.route > prices.replica_window * m * (
                up - down
            ):
                n[down:up] += m
                steps[down] += m
                steps[up] -= m
                cancelled = True
    return n


class CostBalance:
    """BGElasor's controller: CBA over the forecast horizon for every operator, re-planned each
    window; the first window is used.

    ``drain_s`` spreads the present backlog over that many seconds and adds it to the forecast rate;
    the published rule has no such term (``None``) since its platform discards what it cannot
    process in time.
    """

    def __init__(
        self, prices: Prices | Mapping[str, float] | None = None, drain_s: float | None = None
    ) -> None:
        self.prices = priced(prices)
        if drain_s is not None and not drain_s > 0:
            raise InvalidConfig(f"drain_s is {drain_s:g}: a backlog drains in more than 0 seconds")
        self.drain_s = drain_s

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        replicas, reasons = {}, {}
        prices = self.prices.per_window(history.window_s)
        for name, rates in expected_rates(topology, history, forecasts).items():
            running = max(1, history.replicas(name))
            waiting = history.backlog(name)
            if rates.max() <= 0 and waiting == 0:
                replicas[name], reasons[name] = (
                    1,
                    f"0 events expected in the next {len(rates)} windows",
                )
                continue
            service_time_s = known_service_time_s(history, name)
            asked = rates if self.drain_s is None else rates + waiting / self.drain_s
            schedule = (
                cost_balance(asked, 1.0 / service_time_s, prices, running)
                if service_time_s > 0
                else np.ones(len(rates), dtype=np.int64)
            )
            replicas[name] = int(schedule[0])
            least, most = (
                need(float(rates[0]), service_time_s),
                need(float(rates.max()), service_time_s),
            )
            reasons[name] = (
                f"{rates[0]:.1f} events/s expected next need {least}, the {len(rates)} windows "
                f"ahead at most {most}"
                + (
                    f"; {schedule[0] - least} idle ones stay, which is cheaper"
                    if schedule[0] > least
                    else ""
                )
            )
        return Plan(replicas, reasons)


class SimpleProactive:
    """SPEA: the larger of what the last window needed and what the forecast next window needs
    (BGElasor, section 4.3).
    """

    monotone = True

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        latest = history.latest
        replicas, reasons = {}, {}
        for name, rates in expected_rates(topology, history, forecasts).items():
            now, then = latest.samples[name].arrived / latest.window_s, float(rates[0])
            if max(now, then) <= 0:
                replicas[name], reasons[name] = 1, "0 events now and 0 expected"
                continue
            service_time_s = known_service_time_s(history, name)
            replicas[name] = need(max(now, then), service_time_s)
            reasons[name] = (
                f"{now:.1f} events/s now need {need(now, service_time_s)}, "
                f"{then:.1f} expected next need {need(then, service_time_s)}"
            )
        return Plan(replicas, reasons)
