"""A micro-batch station of DRS's network from what an operator's batches measured."""

from __future__ import annotations

import statistics

import numpy as np

from foretide.history import History
from foretide.plan.batch_model import Line, robust_line
from foretide.plan.batch_network import BatchStation
from foretide.plan.processors import Station
from foretide.topology import Operator

LAST = 12
"""Windows that the fixed cost and the wait for a batch are taken from."""
TASK_PRIOR = (Line(0.2, 0.03), Line(1.0, 0.03))
"""Fixed cost of a batch and of one more task, seconds: mean and standard deviation beforehand."""


def batch_station(queue: Station, history: History, operator: Operator) -> BatchStation | None:
    """The operator at the rate of ``queue``; None where no micro-batches are reported. An operator
    that nothing reaches takes no time.
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
    pace_s = latest.trigger_s
    if pace_s is None:
        pace_s = min(window_s / (s.batches or 1.0) for window_s, s in seen)
    limits = [operator.max_replicas, latest.max_parallelism or operator.max_replicas]
    bare = BatchStation(
        queue.rate,
        queue.service_time_s,
        pace_s,
        wait_s=0.0,
        fixed_s=0.0,
        scv=statistics.median(scvs) if scvs else 0.0,
        most=max(1, min(limits)),
    )
    tasks = np.array([float(max(1, s.replicas)) for _, s in seen])
    fixed = np.array(
        [
            max(1e-3, (s.batch_s or 0.0) - bare.batch_of_s(k, s.processed / (s.batches or 1.0)))
            for k, (_, s) in zip(map(int, tasks), seen, strict=True)
        ]
    )
    cost = robust_line(tasks, fixed, np.ones_like(fixed), TASK_PRIOR)
    waits = [
        s.sojourn_s - s.batch_s - max(0.0, s.batch_s - pace_s) / 2
        for _, s in seen
        if s.sojourn_s is not None and s.batch_s is not None
    ]
    wait_s = max(0.0, statistics.median(waits)) if waits else pace_s / 2
    return BatchStation(
        bare.rate, bare.service_time_s, pace_s, wait_s, cost.fixed, cost.slope, bare.scv, bare.most
    )
