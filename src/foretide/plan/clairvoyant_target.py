"""The clairvoyant of the promise: the cheapest schedule that keeps a share within a target, from
the load as it will come. Simulator only.
"""

from __future__ import annotations

from collections.abc import Mapping

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import Forecast, Plan, Prices
from foretide.plan.future import Future
from foretide.plan.optimum import Schedule, lead_windows, priced, without_valleys
from foretide.plan.target_optimum import Promise, target_optimum
from foretide.topology import Topology
from foretide.wording import percent, plural


class ClairvoyantTarget:
    """Each operator follows its ``target_optimum`` over the whole future.

    The waits of an event's operators add up, so each gets an equal part of the target and of the
    events that may be late. That keeps the promise for a fluid; it knows no chance in a window,
    so that a run of few slow events can be later. The bound that costs are compared with
    (``bound``) gives every operator the whole of both.
    """

    def __init__(
        self, future: Future | None = None, prices: Prices | Mapping[str, float] | None = None
    ) -> None:
        self.future, self.prices = future, priced(prices)
        self._schedules: dict[str, Schedule] = {}

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        future = self.future
        if future is None or future.spare_s is None or not future.work:
            raise NotReady(
                "the clairvoyant-target planner needs the future of the load and a latency target: "
                "it runs in the simulator alone"
            )
        window = future.window(history.now)
        lead = lead_windows(history.latest.lead_s, future.window_s)
        if not self._schedules:
            parts = len(topology.names)
            promise = Promise(
                max(0.0, future.spare_s) / parts / future.window_s,
                1.0 - (1.0 - future.share) / parts,
            )
            prices = self.prices.per_window(future.window_s)
            for n in topology.names:
                found = target_optimum(
                    future.work[n][window:],
                    promise,
                    prices,
                    max(1, history.replicas(n)),
                    topology[n].max_replicas,
                )
                self._schedules[n] = without_valleys(found.schedule, lead)
            self._begun = window
        at = window - self._begun
        target = {n: int(s[at : at + lead + 1].max()) for n, s in self._schedules.items()}
        reasons = {
            n: f"the cheapest schedule that keeps {percent(future.share)} within the target has "
            f"{plural(r, 'replica')} in window {window}, which keeps "
            f"{future.work[n][window]:.1f} busy"
            for n, r in target.items()
        }
        return Plan(target, reasons)


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
        target_optimum(work, promise, each, start[n], most[n]).low
        for n, work in future.work.items()
    )
