"""Planners that know the future: the cheapest schedule, and the static sizes people wish they had
chosen. Simulator only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import numpy as np

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import Forecast, Plan, Prices
from foretide.plan.future import Future
from foretide.plan.need import known_service_time_s
from foretide.plan.optimum import (
    Schedule,
    lead_windows,
    needs,
    optimal_schedule,
    priced,
    without_valleys,
)
from foretide.topology import Topology
from foretide.wording import plural


class Clairvoyant:
    """The optimum for the load as it will come: no planner can be cheaper and always cover the
    need. Never runs live.

    Each operator follows ``optimal_schedule`` over its whole future, begun from the replicas it had
    when first asked. Where capacity takes time (``Snapshot.lead_s``), it asks for what the window
    in which that capacity works needs, and does not give back what it needs again within the lead
    time: a valley that short cannot be used.
    """

    def __init__(
        self, future: Future | None = None, prices: Prices | Mapping[str, float] | None = None
    ) -> None:
        self.future = future
        self.prices = priced(prices)
        self._schedules: dict[str, Schedule] = {}

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        if self.future is None:
            raise NotReady(
                "the clairvoyant planner has no future load: it runs in the simulator only"
            )
        window = self.future.window(history.now)
        if not self._schedules:
            self._schedules = {
                n: self._schedule(topology, history, n, window) for n in topology.names
            }
        lead = lead_windows(history.latest.lead_s, self.future.window_s)
        ahead = slice(window, window + lead + 1)
        target = {n: int(self._schedules[n][ahead].max()) for n in topology.names}
        until = "" if not lead else f" and the {lead} after it, the lead time"
        reasons = {
            n: f"the cheapest schedule has {plural(r, 'replica')} in window {window}{until}, "
            f"which needs {self.future.need[n][window]}"
            for n, r in target.items()
        }
        return Plan(target, reasons)

    def _schedule(self, topology: Topology, history: History, name: str, window: int) -> Schedule:
        assert self.future is not None
        lead = lead_windows(history.latest.lead_s, self.future.window_s)
        need = without_valleys(self.future.need[name], lead)
        ahead = optimal_schedule(
            need[window:],
            self.prices.per_window(self.future.window_s),
            max(1, history.replicas(name)),
            topology[name].max_replicas,
        )
        return np.concatenate([need[:window], ahead])


class _Fixed(ABC):
    """One number per operator, chosen from the needs of the whole load: of the future when told,
    else of the past so far.
    """

    what: str

    def __init__(self, future: Future | None = None) -> None:
        self.future = future

    @abstractmethod
    def choose(self, need: Schedule) -> int:
        """Replicas for all windows, from what each of them needs."""

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        need: Callable[[str], Schedule] = (
            self.future.need.__getitem__ if self.future else lambda name: _past(history, name)
        )
        target = {n: self.choose(need(n)) for n in topology.names}
        span = "in the whole load" if self.future else "so far"
        return Plan(
            target, {n: f"fixed at {r}: the {self.what} need {span}" for n, r in target.items()}
        )


class StaticPeak(_Fixed):
    """Sized for the highest window of the load, always: what people who cannot scale pay."""

    what = "highest"

    def choose(self, need: Schedule) -> int:
        return int(need.max())


class StaticMean(_Fixed):
    """Sized for the mean need, always: cheap, and too small whenever the load is above its mean."""

    what = "mean"

    def choose(self, need: Schedule) -> int:
        return max(1, math.ceil(float(need.mean()) - 1e-9))


def _past(history: History, name: str) -> Schedule:
    rates = history.rates(name)
    rates = rates[np.isfinite(rates)]
    if not rates.any():
        raise NotReady(f"operator '{name}' has received no event yet: its need is unknown")
    return needs(rates, known_service_time_s(history, name))
