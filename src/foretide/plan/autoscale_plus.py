"""AUTOSCALE+ of DABS-Storm (section 4): estimate each operator's input through the graph, compare
with what its replicas can do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from foretide.errors import InvalidConfig
from foretide.history import History
from foretide.model import Forecast, Plan, Snapshot
from foretide.plan.need import known_service_time_s
from foretide.topology import Topology

ROUNDING = 1e-9


def usable_cpu(used: float, reserved: float, idle: float, sharers: float, weight: float) -> float:
    """CPU that one replica can count on soon, in cores: ``weight*max(used, reserved) +
    idle/sharers``, at most 1 (one thread).

    DABS-Storm, equation 7. The paper subtracts only the other threads' use from 100 %, which counts
    the replica's own use twice; ``idle`` here is unused CPU.

    >>> usable_cpu(used=0.5, reserved=1.0, idle=0.5, sharers=1, weight=0.3)
    0.8
    """
    return min(1.0, weight * max(used, reserved) + idle / sharers)


def estimated_inputs(
    topology: Topology,
    history: History,
    forecasts: Mapping[str, Forecast],
    combine: Literal["max", "min"] = "max",
) -> dict[str, float]:
    """Events each operator will have to process in the next windows (DABS-Storm, equations 3 to 5).

    ``input_i = combine(own estimate, sum_p input_p * s_{p->i}) + q_i``, in the order of the graph:
    the own estimate is the forecast summed over its windows. An operator without a forecast takes
    what its parents send, and a parent reached through a loop or of unknown selectivity is left to
    the own estimate.
    """
    choose = max if combine == "max" else min
    inputs: dict[str, float] = {}
    for name in topology.order:
        estimates = []
        if name in forecasts:
            estimates.append(sum(forecasts[name].mean) * history.window_s)
        shares = [
            (p, history.selectivity(p, name)) for p in topology.predecessors(name) if p in inputs
        ]
        known = [inputs[p] * s for p, s in shares if s is not None]
        if known:
            estimates.append(sum(known))
        inputs[name] = (choose(estimates) if estimates else 0.0) + history.backlog(name)
    return inputs


@dataclass(frozen=True, slots=True)
class Interval:
    """The working interval ``[beta*k, k]`` (equation 11): inside it nothing changes."""

    beta: float = 0.8

    def side(self, current: int, ideal: float) -> Literal["above", "below", "inside"]:
        """Where the ideal degree lies; both ends belong to the interval, rounding included."""
        if ideal > current * (1 + ROUNDING):
            return "above"
        return "below" if ideal < self.beta * current * (1 - ROUNDING) else "inside"

    def degree(self, current: int, ideal: float, reserved: int) -> int:
        """The new degree: ``reserved`` replicas when ``ideal`` lies outside the interval (equation
        12), else the current ones.

        Reservations promise less than what is usable now, so ``reserved`` can exceed the current
        degree although fewer would do; scaling in never adds replicas, scaling out never removes
        any.

        >>> degree = Interval().degree
        >>> degree(10, ideal=11.5, reserved=14), degree(10, ideal=8.0, reserved=5)
        (14, 10)
        >>> degree(10, ideal=7.9, reserved=5), degree(10, ideal=7.9, reserved=12)
        (5, 10)
        """
        side = self.side(current, ideal)
        if side == "above":
            return max(current + 1, reserved)
        return min(current, reserved) if side == "below" else current


class AutoscalePlus:
    """Scale out when the ideal degree exceeds the current one, in when it falls below ``beta``
    times it.

    ``capacity = horizon / service_time * usable`` and ``ideal = input / capacity``. The new degree
    is the smallest k' with ``input / (horizon / service_time * reserved * weight) <= k'``
    (equations 9 to 13). ``weight`` is the paper's lambda: 0.3 plans for replicas that are busy 30 %
    of the time. ``reserved`` is the CPU reserved for a replica, in cores (a Spark task has a whole
    one). Within ``settle_s`` of a change nothing is decided, because measurements of that time say
    little (section 4.1; the paper gives no figure). Raises NotReady while a service time is
    unknown; an operator that never saw an event keeps its replicas.
    """

    def __init__(
        self,
        weight: float = 0.3,
        beta: float = 0.8,
        combine: Literal["max", "min"] = "max",
        reserved: float = 1.0,
        settle_s: float = 30.0,
    ) -> None:
        if not 0 < weight < 1 or not 0 < beta <= 1:
            raise InvalidConfig(f"weight {weight} must lie in (0, 1) and beta {beta} in (0, 1]")
        if combine not in ("max", "min"):
            raise InvalidConfig(
                f"combine is {combine!r}: take 'max' (cautious) or 'min' (saves replicas)"
            )
        self.weight = weight
        self.interval = Interval(beta)
        self.combine: Literal["max", "min"] = combine
        self.reserved = reserved
        self.settle_s = settle_s

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        current = {n: max(1, history.replicas(n)) for n in topology.names}
        since = history.since_change_s()
        if since is not None and since < self.settle_s:
            why = (
                f"settling: {since:.0f} s since the last change, decides again after "
                f"{self.settle_s:.0f} s"
            )
            return Plan({n: history.asked(n) for n in current}, dict.fromkeys(current, why))
        horizon_s = max((f.horizon for f in forecasts.values()), default=1) * history.window_s
        inputs = estimated_inputs(topology, history, forecasts, self.combine)
        replicas, reasons = {}, {}
        for name, k in current.items():
            if inputs[name] == 0 and history.service_time_s(name) is None:
                replicas[name], reasons[name] = k, "no events seen or expected yet: replicas stay"
                continue
            alone = horizon_s / known_service_time_s(history, name)
            usable = self._usable(name, history.latest)
            ideal = inputs[name] / (alone * usable)
            reserved = max(
                1, math.ceil(inputs[name] / (alone * self.reserved * self.weight) * (1 - ROUNDING))
            )
            replicas[name] = self.interval.degree(k, ideal, reserved)
            reasons[name] = (
                f"{inputs[name]:.0f} events in the next {horizon_s:.0f} s need {ideal:.2f} "
                f"replicas of {usable:.2f} usable cores: "
                f"{self.interval.side(k, ideal)} the working interval {self.interval.beta * k:.1f} "
                f"to {k}; reservations ask for {reserved}"
            )
        return Plan(replicas, reasons)

    def _usable(self, name: str, latest: Snapshot) -> float:
        """The worst of an operator's replicas (equation 8): by host where hosts are known, else
        each has a core to itself.
        """
        on = [h for h in latest.hosts or () if name in h.loads]
        if on:
            threads = _threads_per_host(latest)
            return min(
                usable_cpu(
                    h.loads[name] / threads[name],
                    self.reserved,
                    h.capacity * max(0.0, 1 - h.utilization),
                    max(1.0, sum(threads[o] for o in h.loads)),
                    self.weight,
                )
                for h in on
            )
        sample = latest.samples[name]
        busy = sample.replica_busy_s or ((sample.busy_s or 0.0) / max(1, sample.replicas),)
        shares = [min(1.0, b / latest.window_s) for b in busy]
        return min(usable_cpu(u, self.reserved, 1 - u, 1, self.weight) for u in shares)


def _threads_per_host(latest: Snapshot) -> dict[str, float]:
    """Replicas of each operator per host that carries it; hosts do not say how many there are, so
    they are taken as even.
    """
    carried = [o for h in latest.hosts or () for o in h.loads]
    replicas = {o: latest.samples[o].replicas if o in latest.samples else 1 for o in carried}
    return {o: max(1.0, r / carried.count(o)) for o, r in replicas.items()}
