"""A micro-batch station of DRS's network from what an operator's batches measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from foretide.clock import PAUSE, span_s
from foretide.history import History
from foretide.plan.batch_model import Line, robust_line
from foretide.plan.batch_network import BatchStation
from foretide.plan.processors import Station
from foretide.topology import Operator

LAST = 12
"""Windows that the fixed cost and the wait for a batch are taken from."""
TASK_PRIOR = (Line(0.2, 0.02), Line(1.0, 0.01))
"""Fixed cost of a batch and of one more task, seconds: mean and standard deviation beforehand."""


def batch_station(
    queue: Station, history: History, operator: Operator, names: Sequence[str]
) -> BatchStation | None:
    """The operator at the rate of ``queue``; None where no micro-batches are reported. An operator
    that nothing reaches takes no time. ``names`` are the operators in the order of the network.
    """
    name, latest = operator.name, history.latest.samples[operator.name]
    if queue.rate <= 0:
        return BatchStation(0.0, 0.0, 0.0, 0.0, 0.0)
    seen = [
        (snapshot.window_s, s)
        for snapshot in history.recent(LAST)
        if (s := snapshot.samples[name]).batches and s.batch_s and s.busy_s and s.processed
    ]
    if not seen:
        return None
    scvs = [s.scv_service for _, s in seen if s.scv_service is not None]
    triggers = [t for x in history.latest.samples.values() if (t := x.trigger_s) is not None]
    source = latest.trigger_s is not None or not triggers
    pace_s = latest.trigger_s if latest.trigger_s is not None else PAUSE * min(triggers, default=0)
    if not triggers:
        pace_s = min(window_s / (s.batches or 1.0) for window_s, s in seen)
    limits = [operator.max_replicas, latest.max_parallelism or operator.max_replicas]
    arrivals = [s.scv_arrival for _, s in seen if s.scv_arrival is not None]
    dispersion = statistics.median(arrivals) if arrivals and source else 1.0
    bare = BatchStation(
        queue.rate,
        queue.service_time_s,
        pace_s,
        wait_s=0.0,
        fixed_s=0.0,
        scv=statistics.median(scvs) if scvs else 0.0,
        most=max(1, min(limits)),
        dispersion=dispersion,
        producers=() if source else tuple(names.index(p) for p in operator.inputs),
    )
    tasks = np.array([float(max(1, s.replicas)) for _, s in seen])
    fixed = np.array(
        [
            max(1e-3, (s.batch_s or 0.0) - bare.batch_of_s(k, s.processed / (s.batches or 1.0)))
            for k, (_, s) in zip(map(int, tasks), seen, strict=True)
        ]
    )
    cost = robust_line(tasks, fixed, np.ones_like(fixed), TASK_PRIOR)
    instant = replace(bare, fixed_s=cost.fixed, per_task_s=cost.slope)
    if not source:
        instant = replace(instant, span_s=span_s(min(triggers), cost.fixed))
    waits = []
    for snapshot in history.recent(LAST):
        s = snapshot.samples[name]
        batches = sum(snapshot.samples[p].batches or 0.0 for p in operator.inputs)
        came_s = 0.0 if source or not batches else snapshot.window_s / batches
        inside_s = replace(instant, pace_s=max(pace_s, came_s)).sojourn_s(max(1, s.replicas))
        if s.sojourn_s is not None and math.isfinite(inside_s):
            waits.append(s.sojourn_s - inside_s)
    wait_s = statistics.median(waits) if waits else pace_s / 2
    wait_s = min(max(wait_s, 0.0), pace_s)  # what is more than the pace comes from a backlog
    return replace(instant, wait_s=wait_s)
