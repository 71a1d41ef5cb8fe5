"""DRS: an open queueing network built from measurements, and the allocation that meets a latency
target on it.

Owns the measurer's smoothing and the scheduler's rule (DRS, section IV); the optimizers are in
``plan/processors.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from foretide.errors import Infeasible, InvalidConfig, NotReady
from foretide.history import History
from foretide.model import Array, Forecast, Plan, Snapshot
from foretide.plan.batch_measured import batch_station
from foretide.plan.batch_network import BatchNetwork, BatchStation
from foretide.plan.flow import Flow
from foretide.plan.need import known_service_time_s
from foretide.plan.processors import QueueNetwork, Station
from foretide.plan.queueing import variability
from foretide.quantities import sojourn_sum_s
from foretide.topology import Topology

Network = QueueNetwork | BatchNetwork
WORTH = 0.95
"""A spread of the same replicas is changed when the modelled latency falls below this part."""


@dataclass(frozen=True, slots=True)
class DrsSettings:
    """Published constants as defaults.

    ``t_max_s`` and ``t_min_s`` bound the latency. With ``total`` they are ignored and that many
    replicas are always assigned in the best way (the paper's optimization 6). ``k_max`` bounds the
    total: what the target needs beyond it is not asked for. Nothing changes
    within ``reallocate_after_s`` (T_ra) of the last change. Measurements are smoothed over
    ``smoothing`` windows, or by ``D <- alpha*D + (1 - alpha)*d`` where ``alpha`` is set. ``model``
    is the queueing model. ``measure`` is what the bounds apply to: the end-to-end ``latency``, or
    the ``sojourn`` times summed over an event and all that came of it, as the model defines T, or
    the ``completion`` of an input and all that came of it, as the paper measures T.
    With ``foresight`` the highest forecast replaces the smoothed load, which DRS itself does not
    do.
    """

    t_max_s: float = 1.0
    t_min_s: float = 0.45
    total: int | None = None
    k_max: int | None = None
    reallocate_after_s: float = 60.0
    smoothing: int = 6
    alpha: float | None = None
    model: Literal["mmk", "gigk"] = "gigk"
    measure: Literal["latency", "sojourn", "completion"] = "latency"
    foresight: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.t_min_s < self.t_max_s:
            raise InvalidConfig(
                f"t_min_s {self.t_min_s} and t_max_s {self.t_max_s}: need 0 <= t_min_s < t_max_s"
            )
        if self.k_max is not None and self.k_max < 1:
            raise InvalidConfig(f"k_max {self.k_max}: the most replicas in all must be at least 1")
        if self.alpha is not None and not 0 <= self.alpha < 1:
            raise InvalidConfig(f"alpha {self.alpha}: need 0 <= alpha < 1")
        if self.model not in ("mmk", "gigk"):
            raise InvalidConfig(
                f"unknown model '{self.model}' of the drs planner; valid: mmk, gigk"
            )
        if self.measure not in ("latency", "sojourn", "completion"):
            raise InvalidConfig(
                f"the drs planner cannot measure '{self.measure}'; valid: latency, sojourn, "
                "completion"
            )


class Drs:
    """Dynamic Resource Scaling (Fu et al., IEEE/ACM ToN 2017).

    Slower than ``t_max_s``: the fewest replicas that meet it. Faster than ``t_min_s``: the same,
    never more than now. Between: the same total, assigned in the best way. Where operators report
    micro-batches the model is ``plan.batch_network``, else the paper's queues. It is multiplied
    by ``max(1, measured/model)`` of the present allocation (from the authors' code; the paper does
    not mention it).
    """

    Settings = DrsSettings

    def __init__(self, settings: DrsSettings | None = None) -> None:
        self.settings = settings or DrsSettings()

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        running = tuple(max(1, history.replicas(n)) for n in topology.names)
        network = self.model(topology, history, forecasts)
        since = history.since_change_s()
        if since is not None and since < self.settings.reallocate_after_s:
            why = (
                f"held: {since:.0f} s since the last change, DRS waits "
                f"{self.settings.reallocate_after_s:.0f} s"
            )
            asked = tuple(history.asked(n) for n in topology.names)
            return self._plan_of(topology, network, asked, why)
        target, why = self._choose(network, running, self.measured_s(history))
        return self._plan_of(topology, network, target, why)

    def model(
        self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]
    ) -> Network:
        """The network that latency is planned on: queues, or micro-batches where every operator
        reports its batches.
        """
        queues = self.network(topology, history, forecasts)
        stations = []
        for name, queue in zip(topology.names, queues.stations, strict=True):
            station = batch_station(queue, history, topology[name], topology.names)
            if station is None:
                return queues
            stations.append(station)
        return BatchNetwork(tuple(stations), queues.load)

    def network(
        self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]
    ) -> QueueNetwork:
        """The queueing network as measured: traffic equations over smoothed loads and
        selectivities.
        """
        flow = Flow.measured(topology, history)
        ahead = forecasts if self.settings.foresight else {}
        loads = {
            n: max(ahead[n].mean) if n in ahead else self._smooth(history.offered(n))
            for n in topology.sources
        }
        load = sum(loads.values())
        if load <= 0:
            raise NotReady("no events were offered yet: DRS needs a load to model")
        stations = []
        for name, rate in flow.through(loads).items():
            service_time_s = known_service_time_s(history, name) if rate > 0 else 0.0
            stations.append(Station(rate, service_time_s, self._variability(history, name)))
        return QueueNetwork(tuple(stations), load)

    def _smooth(self, values: Array) -> float:
        known = values[np.isfinite(values)]
        if known.size == 0:
            raise NotReady("nothing was measured yet: DRS needs one window")
        if self.settings.alpha is None:
            return float(known[-self.settings.smoothing :].mean())
        weights = self.settings.alpha ** np.arange(known.size - 1, -1, -1, dtype=float)
        weights[1:] *= (
            1 - self.settings.alpha
        )  # the first value starts the recursion with full weight
        return float(known @ weights)

    def _variability(self, history: History, name: str) -> float:
        if self.settings.model == "mmk":
            return 1.0
        recent = list(history.samples(name, self.settings.smoothing))
        arrival = [s.scv_arrival for s in recent if s.scv_arrival is not None]
        service = [s.scv_service for s in recent if s.scv_service is not None]
        return variability(
            float(np.mean(arrival)) if arrival else None,
            float(np.mean(service)) if service else None,
        )

    def measured_s(self, history: History) -> float | None:
        """Smoothed mean latency since replicas last changed: end to end where asked and known, else
        sojourns summed by visits.
        """
        since = history.since_change_s()
        settled = [s for s in history.recent(1000) if since is None or s.at > history.now - since]
        times = [t for t in (self._seen_s(s) for s in settled) if t is not None]
        return self._smooth(np.array(times)) if times else None

    def _seen_s(self, snapshot: Snapshot) -> float | None:
        measured = {"latency": snapshot.latency, "completion": snapshot.completion}
        seen = measured.get(self.settings.measure)
        if seen is not None and seen.count > 0:
            return seen.mean_ms / 1e3
        return sojourn_sum_s(snapshot.samples)

    def _choose(
        self, network: Network, running: tuple[int, ...], measured_s: float | None
    ) -> tuple[tuple[int, ...], str]:
        if self.settings.total is not None:
            best = network.assign(self.settings.total)
            return (
                best,
                f"the best spread of {self.settings.total} replicas, modelled "
                f"{network.sojourn_s(best) * 1e3:.0f} ms",
            )
        modelled = network.sojourn_s(running)
        seen = modelled if measured_s is None else measured_s
        if math.isinf(modelled):
            best, limit = self._fewest(network, 1.0)
            return (
                best,
                f"some queue grows without end; {network.sojourn_s(best) * 1e3:.0f} ms are "
                f"modelled, {self._goal()}{limit}",
            )
        if measured_s is None and isinstance(network, BatchNetwork):
            return running, "no batch has ended since the last change: the replicas stay"
        factor = max(1.0, seen / modelled) if modelled > 0 else 1.0
        figures = f"{seen * 1e3:.0f} ms measured, {modelled * 1e3:.0f} ms modelled, {self._goal()}"
        if self._too_fast_s(network) <= seen <= self.settings.t_max_s:
            return self._spread(network, running, f"{seen * 1e3:.0f} ms measured, {self._goal()}")
        fewest, limit = self._fewest(network, factor)
        if seen > self.settings.t_max_s:
            if sum(fewest) <= sum(running) and not limit:
                fewest = self._one_more(network, running)
            return fewest, f"{figures}: too slow{limit}"
        fewer = sum(fewest) < sum(running)
        said = "fewer suffice" if fewer else "no fewer meet the target"
        return (fewest if fewer else running), f"{figures}: {said}{limit}"

    def _too_fast_s(self, network: Network) -> float:
        """T_min. In micro-batches most of a latency is waiting and fixed cost, which stay however
        few the replicas are, so there T_min is a part of what replicas can change.
        """
        t_min_s, t_max_s = self.settings.t_min_s, self.settings.t_max_s
        if not isinstance(network, BatchNetwork) or network.best_s >= t_max_s:
            return t_min_s
        return max(t_min_s, network.best_s + t_min_s / t_max_s * (t_max_s - network.best_s))

    def _spread(
        self, network: Network, running: tuple[int, ...], figures: str
    ) -> tuple[tuple[int, ...], str]:
        """The same total, assigned in the best way. Micro-batches are measured with noise, so there
        a spread that gains little is left as it is.
        """
        total = sum(running)
        if self.settings.k_max is not None:
            total = min(total, self.settings.k_max)
        best = network.assign(total)
        same = isinstance(network, BatchNetwork) and total == sum(running)
        if same and network.sojourn_s(best) > WORTH * network.sojourn_s(running):
            best = running
        return best, f"{figures}: {total} replicas stay, best spread"

    def _one_more(self, network: Network, running: tuple[int, ...]) -> tuple[int, ...]:
        """Too slow though the model says that fewer would do: the model's queues keep their total,
        a network of micro-batches gets one replica more where it helps most.
        """
        total = sum(running)
        if not isinstance(network, BatchNetwork):
            return network.assign(total)
        most = math.inf if self.settings.k_max is None else self.settings.k_max
        more = network.assign(int(min(total + 1, max(most, network.least))))
        return more if network.sojourn_s(more) < network.sojourn_s(running) else running

    def _fewest(self, network: Network, factor: float) -> tuple[tuple[int, ...], str]:
        """The fewest replicas on the corrected model, and what limits them, as the end of a
        sentence. A correction that makes the target unreachable comes from a backlog that still
        drains, not from the model, and is left out. Where micro-batches cannot meet the target at
        all, those beyond which little gets faster.
        """
        limit = ""
        try:
            fewest = network.fewest(self.settings.t_max_s / factor)
        except Infeasible as error:
            if factor != 1.0:
                return self._fewest(network, 1.0)
            if not isinstance(network, BatchNetwork):
                raise
            fewest, limit = network.nearly_best(), f"; {error}"
        k_max = self.settings.k_max
        if k_max is not None and sum(fewest) > k_max:
            limit += f"; {sum(fewest)} replicas are wanted and K_max is {k_max}"
            fewest = network.assign(k_max)
        return fewest, limit

    def _goal(self) -> str:
        return f"target {self.settings.t_min_s * 1e3:.0f}-{self.settings.t_max_s * 1e3:.0f} ms"

    def _plan_of(
        self, topology: Topology, network: Network, target: tuple[int, ...], why: str
    ) -> Plan:
        stations: Sequence[Station | BatchStation] = network.stations
        reasons = {
            name: f"{s.rate:.1f} events/s at {s.service_time_s * 1e3:.2f} ms keep {s.offered:.2f} "
            f"of {k} replicas busy"
            for name, s, k in zip(topology.names, stations, target, strict=True)
        }
        return Plan(dict(zip(topology.names, target, strict=True)), {**reasons, "": why})
