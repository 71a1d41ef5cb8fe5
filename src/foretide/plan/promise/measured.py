"""What a planner measures of all operators at once, as arrays in the order of the topology."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import Array
from foretide.plan.flow import Flow
from foretide.plan.queueing import variability
from foretide.topology import Topology

LAST = 10
"""Windows over which figures of batches are taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One step's measurements. ``service_s`` is NaN for an operator that has never worked, and so
    are ``interval_s`` and ``fixed_s`` where no batches are measured. ``backlog`` are events that
    queue at an operator, ``waiting`` those and what upstream will send it.
    """

    flow: Flow
    running: Array
    service_s: Array
    scale_s: Array
    backlog: Array
    waiting: Array
    arrived: Array
    interval_s: Array
    fixed_s: Array

    @property
    def batches(self) -> bool:
        return bool(np.isfinite(self.interval_s).any())


def measure(topology: Topology, history: History) -> Measured:
    """All that one step needs; raises NotReady while the flow between operators is unknown."""
    latest, names = history.latest, topology.names
    flow = Flow.measured(topology, history)
    samples = [latest.samples[n] for n in names]
    service = [history.service_time_s(n) for n in names]
    for name, sample, s in zip(names, samples, service, strict=True):
        if s is None and sample.arrived + sample.backlog > 0:
            raise NotReady(
                f"operator '{name}' has not processed an event yet: its service time is unknown"
            )
    service_s = np.array([np.nan if s is None else s for s in service])
    backlog = np.array([float(x.backlog) for x in samples])
    vary = np.array([variability(x.scv_arrival, x.scv_service) for x in samples])
    batches = np.array([_batch(history, n) for n in names])
    return Measured(
        flow,
        np.array([float(max(1, x.replicas)) for x in samples]),
        service_s,
        np.nan_to_num(service_s) * vary,
        backlog,
        flow.spread(backlog[None])[0],
        np.array([x.arrived for x in samples]),
        batches[:, 0],
        batches[:, 1],
    )


def _batch(history: History, name: str) -> tuple[float, float]:
    """Shortest interval of late, and the lower quartile of the part of a batch that its work does
    not explain: batches that start workers, the first ones among them, take longer.
    """
    intervals, fixed = [], []
    if history.latest.samples[name].batches is None:
        return np.nan, np.nan
    for snapshot in history.recent(LAST):
        s = snapshot.samples[name]
        if s.batches and s.batch_s is not None and s.busy_s is not None:
            intervals.append(snapshot.window_s / s.batches)
            fixed.append(max(0.0, s.batch_s - s.busy_s / s.batches / max(1, s.replicas)))
    return (min(intervals), sorted(fixed)[len(fixed) // 4]) if intervals else (np.nan, np.nan)
