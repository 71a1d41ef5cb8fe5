"""What Spark's dynamic allocation would have held on the same batches: an estimate from the
journal of a run, for the comparison in attach's summary.

Dynamic allocation asks for one executor once tasks have waited for a slot for a second, then for
two, four, ... more every further second, up to one slot per task; it removes an executor that ran
no task for 60 s (Spark's defaults). A micro-batch query brings tasks every few seconds, so it asks
for executors as soon as a stage takes several waves, and gives them back only when batches stop.

It is an estimate: a stage's seconds are scaled by its waves, executors are taken to come at once,
and tasks to be spread over all executors.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from foretide.model import BatchRun, Snapshot, StageRun
from foretide.plan.batch_model import waves

BACKLOG_S = 1.0
"""``spark.dynamicAllocation.schedulerBacklogTimeout``"""
IDLE_S = 60.0
"""``spark.dynamicAllocation.executorIdleTimeout``"""


@dataclass
class DynamicAllocation:
    """Executors that dynamic allocation would hold, window by window, from ``least`` on.

    >>> spark = DynamicAllocation(cores=1, most=4)
    >>> slow = StageRun(tasks=8, task_s=4.0, wall_s=4.0)
    >>> [spark.after((BatchRun(at, 4.3, 400, 1, (slow,)),), at + 5) for at in (0.0, 5.0, 10.0)]
    [4, 4, 4]
    >>> spark.after((), 30.0), spark.after((), 100.0)
    (4, 1)
    """

    cores: int
    most: int
    least: int = 1
    executors: int = 0
    _needs: deque[tuple[float, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.executors = self.executors or self.least

    def see(self, snapshot: Snapshot) -> int:
        """Executors after the batches of one window."""
        runs = [run for sample in snapshot.samples.values() for run in sample.batch_runs]
        return self.after(sorted(runs, key=lambda run: run.started_at), snapshot.at)

    def after(self, runs: Iterable[BatchRun], now: float) -> int:
        """Executors at ``now``, after these batches."""
        for run in runs:
            for stage in run.stages:
                self._stage(stage, run.slots, run.started_at)
        while self._needs and self._needs[0][0] < now - IDLE_S:
            self._needs.popleft()
        used = max((need for _, need in self._needs), default=0)
        self.executors = max(self.least, min(self.executors, used))
        return self.executors

    def _stage(self, stage: StageRun, slots: float | None, at: float) -> None:
        useful = min(self.most, math.ceil(max(1, stage.tasks) / self.cores))
        self._needs.append((at, useful))
        rounds = waves(stage.tasks, self.executors * self.cores)
        wall_s = stage.wall_s
        if slots:
            wall_s *= rounds / waves(stage.tasks, slots)
        waiting_s = wall_s * (1 - 1 / max(1.0, rounds))
        times = math.floor(waiting_s / BACKLOG_S)
        if times >= 1 and useful > self.executors:
            self.executors = min(useful, self.executors + 2 ** min(times, 10) - 1)
