"""Slots that keep micro-batches within a latency target: the planner for queries that Foretide may
watch but not change.

A query that starts a batch every ``tau`` seconds takes up the events of ``tau`` seconds; with s
slots of its own the batch lasts ``d = o + tau * rate * et / s``, where o is the fixed cost of a
batch. An event waits at most ``tau`` for its batch to start and d for its end. So the target T is
met by the smallest

    s >= tau * rate * et / (T - tau - o)      and      s >= rate * et / utilization

(the second so that batches do not pile up). When o + tau >= T no number of slots helps: the plan
says so and asks for what keeps up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import Forecast, Plan
from foretide.plan.need import known_service_time_s
from foretide.topology import Topology


def slots(
    work: float, interval_s: float, overhead_s: float, target_s: float, utilization: float = 0.8
) -> float:
    """Slots for ``work = rate * et`` busy slots; not rounded, since queries of one application
    share slots.

    >>> slots(work=2.0, interval_s=1.0, overhead_s=0.5, target_s=3.5), slots(work=2.0, interval_s=2.0, overhead_s=0.5, target_s=3.5)
    (2.5, 4.0)
    """
    spare_s = target_s - interval_s - overhead_s
    in_time = interval_s * work / spare_s if spare_s > 0 else 0.0
    return max(in_time, work / utilization)


def _whole(share: float) -> int:
    return max(1, math.ceil(share * (1 - 1e-9)))


class MicroBatch:
    """Per query: the slots of the formula above, for the highest rate forecast (its upper quantile
    where known); executors follow.

    ``cores`` are the slots of one executor. The interval and the fixed cost come from the last
    ``last`` windows with batches: the shortest interval seen (a busy query's batches stretch, its
    trigger does not) and the batch time that its busy time on the slots it had does not explain.
    """

    def __init__(
        self,
        target_s: float = 10.0,
        utilization: float = 0.8,
        cores: int = 1,
        max_executors: int = 64,
        last: int = 10,
    ) -> None:
        self.target_s = target_s
        self.utilization = utilization
        self.cores = cores
        self.max_executors = max_executors
        self.last = last

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        replicas, reasons = {}, {}
        total = 0.0
        for name in topology.names:
            et = known_service_time_s(history, name)
            interval_s, overhead_s = self._batches(history, name)
            ahead = forecasts.get(name)
            rate = (
                max(ahead.upper or ahead.mean)
                if ahead
                else history.latest.samples[name].arrived / history.window_s
            )
            work = rate * et
            share = slots(work, interval_s, overhead_s, self.target_s, self.utilization)
            total += share
            replicas[name] = _whole(share)
            reasons[name] = (
                f"{rate:.1f} events/s at {et * 1e3:.2f} ms keep {work:.2f} slots busy; with a "
                f"batch every {interval_s:.1f} s and "
                f"{overhead_s:.2f} s fixed cost each, {share:.2f} slots meet {self.target_s:g} s"
            )
            if interval_s + overhead_s >= self.target_s:
                reasons[name] += (
                    " in no way: the batch interval and its fixed cost alone take "
                    f"{interval_s + overhead_s:.1f} s; "
                    "shorten the trigger or relax the target"
                )
        wanted = _whole(total / self.cores)
        executors = min(wanted, self.max_executors)
        reasons[""] = (
            f"all queries together need {total:.2f} slots: {wanted} "
            f"executor{'s' if wanted > 1 else ''} of {self.cores}"
        )
        if wanted > self.max_executors:
            reasons[""] += f"; held at the maximum of {self.max_executors}"
        return Plan(replicas, reasons, executors)

    def _batches(self, history: History, name: str) -> tuple[float, float]:
        intervals, overheads = [], []
        for snapshot in history.recent(4 * self.last):
            s = snapshot.samples[name]
            if s.batches and s.batch_s is not None and s.busy_s is not None:
                intervals.append(snapshot.window_s / s.batches)
                overheads.append(max(0.0, s.batch_s - s.busy_s / s.batches / max(1, s.replicas)))
        if not intervals:
            raise NotReady(f"query '{name}' has not finished a batch yet: its interval is unknown")
        return min(intervals[-self.last :]), sorted(overheads[-self.last :])[
            len(overheads[-self.last :]) // 2
        ]
