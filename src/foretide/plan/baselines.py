"""Rules in everyday use, as baselines: DS2, Spark's dynamic allocation, a backlog threshold, lazy
capacity provisioning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from foretide.errors import InvalidConfig
from foretide.history import History
from foretide.model import Forecast, Plan, Prices
from foretide.plan.flow import Flow, expected_rates
from foretide.plan.need import known_service_time_s, need
from foretide.plan.optimum import needs, priced
from foretide.quantities import from_outside
from foretide.topology import Topology
from foretide.wording import percent, plural


class Ds2:
    """DS2 (Kalavri et al., OSDI 2018): target rate through the graph divided by the true processing
    rate of one replica.

    The true rate counts busy time only (``1 / service time``). ``utilization`` is the share of a
    replica to plan for.
    """

    monotone = True

    def __init__(self, utilization: float = 0.7) -> None:
        if not 0 < utilization <= 1:
            raise InvalidConfig(f"utilization {utilization}: need 0 < utilization <= 1")
        self.utilization = utilization

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        flow = Flow.measured(topology, history)
        latest = history.latest
        offered = {n: from_outside(s) for n, s in latest.samples.items() if n in topology.sources}
        replicas, reasons = {}, {}
        for name, rate in flow.through(
            {n: count / latest.window_s for n, count in offered.items()}
        ).items():
            if rate <= 0:
                replicas[name], reasons[name] = 1, "a target rate of 0 events/s"
                continue
            service_time_s = known_service_time_s(history, name)
            replicas[name] = need(rate, service_time_s / self.utilization)
            reasons[name] = (
                f"a target rate of {rate:.1f} events/s at {service_time_s * 1e3:.2f} ms each, "
                f"{percent(self.utilization)} busy"
            )
        return Plan(replicas, reasons)


class SparkDra:
    """Spark's dynamic allocation rule, per operator: exponential requests while work waits, idle
    replicas go after a timeout.

    Work waits when the backlog would take the running replicas longer than ``backlog_timeout_s``
    (spark.dynamicAllocation.schedulerBacklogTimeout, 1 s). In the c-th such window in a row
    ``2**(c-1)`` replicas are added, never more than the waiting and arriving work would keep busy
    for one window. Without waiting work only as many stay as were busy at some time in the last
    ``idle_timeout_s`` (executorIdleTimeout, 60 s).
    """

    def __init__(self, backlog_timeout_s: float = 1.0, idle_timeout_s: float = 60.0) -> None:
        self.backlog_timeout_s, self.idle_timeout_s = backlog_timeout_s, idle_timeout_s

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        replicas, reasons = {}, {}
        for name in topology.names:
            sample = history.latest.samples[name]
            running = max(1, sample.replicas)
            if sample.arrived + sample.backlog == 0 and history.service_time_s(name) is None:
                replicas[name], reasons[name] = running, "0 events seen yet: replicas stay"
                continue
            service_time_s = known_service_time_s(history, name)
            waiting = self._windows_waiting(history, name, service_time_s)
            if waiting:
                work = need((sample.arrived + sample.backlog) / history.window_s, service_time_s)
                replicas[name] = max(running, min(running + 2 ** min(waiting - 1, 20), work))
                reasons[name] = (
                    f"{plural(sample.backlog, 'event')} waiting for {plural(waiting, 'window')} "
                    f"in a row: {plural(replicas[name], 'replica')}, {work} at most"
                )
                continue
            busy = self._busy(history, name)
            replicas[name] = min(running, busy)
            reasons[name] = (
                f"{busy} of {plural(running, 'replica')} busy within {self.idle_timeout_s:.0f} s"
            )
        return Plan(replicas, reasons)

    def _windows_waiting(self, history: History, name: str, service_time_s: float) -> int:
        count = 0
        for sample in reversed(list(history.samples(name, 64))):
            if sample.backlog * service_time_s <= self.backlog_timeout_s * max(1, sample.replicas):
                break
            count += 1
        return count

    def _busy(self, history: History, name: str) -> int:
        span = max(1, math.ceil(self.idle_timeout_s / history.window_s))
        recent = [s.busy_s for s in history.samples(name, span)]
        if len(recent) < span or None in recent:
            return max(1, history.replicas(name))
        return max(need((b or 0.0) / history.window_s, 1.0) for b in recent)


class Backlog:
    """One replica per ``threshold`` waiting events: the rule of queue-length autoscalers such as
    KEDA's.

    On its own the rule removes the replicas that keep a queue short and then needs them again, for
    ever. Users of those autoscalers put a processor trigger beside the queue's; so does
    ``keep_up``: never fewer than the last window's rate keeps busy.
    """

    monotone = True

    def __init__(self, threshold: float = 1000.0, keep_up: bool = True) -> None:
        if threshold <= 0:
            raise InvalidConfig(
                f"threshold {threshold}: give the waiting events that justify one replica, > 0"
            )
        self.threshold, self.keep_up = threshold, keep_up

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        replicas, reasons = {}, {}
        latest = history.latest
        for name, sample in latest.samples.items():
            service_time_s = history.service_time_s(name)
            wanted = max(1, math.ceil(sample.backlog / self.threshold))
            busy = (
                need(sample.arrived / latest.window_s, service_time_s)
                if self.keep_up and service_time_s is not None
                else 1
            )
            replicas[name] = max(wanted, busy)
            reasons[name] = (
                f"{sample.backlog:.0f} events wait, {self.threshold:.0f} per replica: {wanted}; "
                f"the rate keeps {busy} busy"
            )
        return Plan(replicas, reasons)


class LazyProvisioning:
    """Lazy capacity provisioning (Lin et al., INFOCOM 2011): at most 3 times the optimum when needs
    are known, routes free.

    The rule moves only when it must: up to the next window's need (the lower bound), down to the
    upper bound. With a hard need and linear prices the upper bound is the largest need of the last
    ``(p_up + p_down)/p`` seconds: an idle replica stays until its idling has cost as much as
    stopping and starting it.
    """

    def __init__(self, prices: Prices | Mapping[str, float] | None = None) -> None:
        self.prices = priced(prices)

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        p = self.prices
        keep = (
            math.floor(p.break_even_s / history.window_s + 1e-9)
            if p.replica_second > 0
            else len(history)
        )
        replicas, reasons = {}, {}
        for name, ahead in expected_rates(topology, history, forecasts).items():
            past = history.rates(name, max(1, keep))
            recent = np.append(past[np.isfinite(past)] if keep else [], ahead[0])
            if recent.max() <= 0:
                replicas[name], reasons[name] = 1, "0 events lately and 0 expected"
                continue
            bounds = needs(recent, known_service_time_s(history, name))
            lower, upper = int(bounds[-1]), int(bounds.max())
            running = max(1, history.replicas(name))
            replicas[name] = min(max(running, lower), upper)
            reasons[name] = (
                f"{ahead[0]:.1f} events/s expected need {lower}; idle ones stay {keep} windows: "
                f"between {lower} and {upper}"
            )
        return Plan(replicas, reasons)
