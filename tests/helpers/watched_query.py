"""A query on a cluster that exists only as arithmetic: batches, waves, lag, executors that take a
while to come. Its snapshots are what ``attach`` would read.
"""

import math
from collections.abc import Callable

import numpy as np

from foretide.history import History
from foretide.model import BatchRun, Sample, Snapshot, StageRun
from foretide.topology import Operator, Topology


class WatchedQuery:
    """8 tasks of 10 ms per event and 20 ms each, 0.3 s fixed per batch, a batch every 2 s. Fixed
    costs start at ``1 + warm_up`` times their value and come down by a third every 6 s.
    """

    def __init__(
        self,
        rate: Callable[[float], float],
        executors: int = 1,
        *,
        tasks: int = 8,
        per_event_s: float = 0.01,
        per_task_s: float = 0.02,
        warm_up: float = 0.0,
        limit: float = math.inf,
        waiting: float = 0.0,
        lead_s: float = 7.0,
        trigger_s: float = 2.0,
        noise: float = 0.05,
    ) -> None:
        self.rate, self.executors, self.tasks = rate, executors, tasks
        self.per_event_s, self.limit, self.backlog = per_event_s, limit, waiting
        self.per_task_s, self.warm_up = per_task_s, warm_up
        self.lead_s, self.trigger_s, self.noise = lead_s, trigger_s, noise
        self.topology = Topology((Operator("q"),))
        self.history = History(self.topology)
        self.rng = np.random.default_rng(7)
        self._at = 0.0
        self._clock = 0.0
        self._next: tuple[float, int] | None = None
        self._running: tuple[float, BatchRun] | None = None
        self._started_at = 0.0
        self._waiting_start = waiting

    def ask(self, executors: int) -> None:
        """Fewer at once, more after the lead time."""
        if executors < self.executors:
            self.executors, self._next = executors, None
        elif executors > self.executors and (self._next is None or self._next[1] != executors):
            self._next = (self._at + self.lead_s, executors)

    def window(self, window_s: float = 5.0, step_s: float = 0.1) -> Snapshot:
        """Let one window pass."""
        arrived = processed = busy_s = 0.0
        runs = []
        end = self._at + window_s
        while self._at < end - 1e-9:
            self._at += step_s
            came = self.rate(self._at) * step_s
            arrived += came
            self.backlog += came
            self._waiting_start += came
            if self._next is not None and self._at >= self._next[0]:
                self.executors, self._next = self._next[1], None
            if self._running and self._at >= self._running[0]:
                run = self._running[1]
                runs.append(run)
                processed += run.events
                self.backlog -= run.events
                busy_s += sum(s.task_s for s in run.stages)
                self._running = None
            if self._running is None and self._at >= self._clock and self._waiting_start >= 1:
                self._start()
        sample = Sample(
            arrived,
            processed,
            max(0.0, self.backlog),
            self.executors,
            busy_s=busy_s,
            offered=arrived,
            batches=len(runs),
            batch_s=float(np.mean([r.duration_s for r in runs])) if runs else None,
            max_parallelism=self.tasks,
            batch_runs=tuple(runs),
            trigger_s=self.trigger_s,
        )
        snapshot = Snapshot(
            self._at, window_s, {"q": sample}, lead_s=self.lead_s, slots=self.executors
        )
        self.history.append(snapshot)
        return snapshot

    def _start(self) -> None:
        events = math.floor(min(self._waiting_start, self.limit))
        self._waiting_start -= events
        slots = self.executors
        noise = math.exp(self.noise * self.rng.standard_normal())
        cold = 1.0 + self.warm_up * math.exp(-self._at / 15.0)
        task_s = (cold * self.per_task_s + self.per_event_s * events / self.tasks) * noise
        wall_s = math.ceil(self.tasks / slots) * task_s
        stage = StageRun(self.tasks, task_s * self.tasks, wall_s)
        left = self._waiting_start if self.limit < math.inf else 0.0
        run = BatchRun(self._at, 0.3 * cold + wall_s, float(events), slots, (stage,), left)
        self._running = (self._at + run.duration_s, run)
        self._clock = self._at + self.trigger_s
