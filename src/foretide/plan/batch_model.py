"""How long a micro-batch takes on any number of slots and events, identified while it runs.

A batch runs its stages one after another. With n events, m tasks in a stage and s slots:

    batch   = serial + sum of stages
    stage   = a + k * ceil(m / s) * task       waves of tasks; a: scheduling, k: skew and contention
    task    = t + b * n / m                     fixed cost of a task, cost per event
    serial  = c + d * n                         planning, offsets, commits: what no stage explains

Every pair of coefficients is fitted to what was measured (task seconds, stage seconds, batch
seconds) by weighted least squares with Huber weights on relative errors, so that outliers and a
JVM's warm-up do not count in full. Observations are kept by kind of batch (slots and magnitude of
events), a few of each: an hour at one load does not drive out what other loads taught, and within a
kind the newest replace the oldest. Weak priors (k near 1, fixed costs near 0) decide what the
measurements leave open.

Pure: records in, numbers out.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from foretide.errors import NotReady
from foretide.model import Array, BatchRun, StageRun

PER_KIND = 8
"""Observations kept of batches of one kind."""
HALF_LIFE = 150.0
"""After so many batches an observation counts half; while fewer have been seen, after a quarter of
them, so that the first batches of a JVM that warms up soon stop to count.
"""
FIXED_SHARE = 0.3
"""Share of a task's time that is taken as fixed, give or take as much, until batches of different
sizes have shown it.
"""
ERRORS = 60
"""Predictions over which the error is taken ..."""
RECENT = 20
"""... and those over which it is looked how far batches outlast them."""
LEAST = 2
"""Batches to see before anything is predicted."""
NEAR = 0.15
"""Slots shared with other queries are not a whole number: so much less than one still counts as
it.
"""


class Line(NamedTuple):
    """The line y = fixed + slope * x."""

    fixed: float
    slope: float

    def __call__(self, x: float) -> float:
        return self.fixed + self.slope * x


class _Observation(NamedTuple):
    """One batch, and when it was seen (counted in batches)."""

    number: int
    run: BatchRun


def waves(tasks: float, slots: float) -> float:
    """Rounds in which ``slots`` run ``tasks`` of equal length; work that is divisible (tasks 0)
    takes the share ``1 / slots``.

    >>> waves(8, 3), waves(8, 4), waves(8, 100), waves(9, 8), waves(8, 3.9), waves(0, 4)
    (3.0, 2.0, 1.0, 2.0, 2.0, 0.25)
    """
    if tasks <= 0:
        return 1.0 / max(slots, 1e-9)
    whole = math.ceil(slots)
    return float(math.ceil(tasks / max(whole if whole - slots <= NEAR else slots, 1e-9)))


def robust_line(
    x: Array, y: Array, weight: Array, prior: tuple[Line, Line], rounds: int = 8
) -> Line:
    """Line through points, none of its coefficients negative: least squares on relative errors with
    Huber weights (1.5 x the median absolute error), and a Gaussian prior given as (mean, standard
    deviation).

    >>> x = np.array([1.0, 2.0, 3.0, 4.0]); y = 2.0 + 3.0 * x; y[3] = 99.0
    >>> line = robust_line(x, y, np.ones(4), (Line(0.0, 0.0), Line(100.0, 100.0)))
    >>> round(line.fixed, 1), round(line.slope, 1)
    (2.0, 3.0)
    """
    mean, deviation = np.array(prior[0]), np.array(prior[1])
    rows = np.column_stack([np.ones_like(x), x])
    scale = np.maximum(y, 0.05 * max(float(np.median(y)), 1e-6))
    noise = 0.1  # relative; what the prior is weighed against
    huber = np.ones_like(y)
    theta = mean
    for _ in range(rounds):
        factor = np.sqrt(weight * huber) / (scale * noise)
        theta = _bounded(rows * factor[:, None], y * factor, mean, deviation)
        error = np.abs(rows @ theta - y) / scale
        usual = float(np.median(error))
        noise = max(0.03, 1.5 * usual)
        limit = 1.5 * max(usual, 0.02)
        huber = np.minimum(1.0, limit / np.maximum(error, 1e-12))
    return Line(float(theta[0]), float(theta[1]))


def _bounded(rows: Array, y: Array, mean: Array, deviation: Array) -> Array:
    """Least squares with a prior for two coefficients >= 0: the unbounded solution, else the better
    one of the two on the border.
    """
    precision = 1.0 / deviation**2
    gram = rows.T @ rows + np.diag(precision)
    moment = rows.T @ y + precision * mean
    scale = 1.0 / np.sqrt(np.diag(gram))
    free = scale * np.linalg.solve(gram * np.outer(scale, scale), scale * moment)
    if (free >= 0).all():
        return np.asarray(free)
    alone = np.maximum(0.0, moment / np.diag(gram))
    border = (np.array([alone[0], 0.0]), np.array([0.0, alone[1]]))
    return min(border, key=lambda theta: float(theta @ gram @ theta - 2 * moment @ theta))


class _Stage(NamedTuple):
    """The fitted coefficients of one stage."""

    tasks: int
    task: Line
    wall: Line

    def seconds(self, events: float, slots: float) -> float:
        tasks = self.tasks if self.tasks <= 0 else max(1, min(self.tasks, math.ceil(events)))
        per_task = self.task(events / tasks if tasks else events)
        return self.wall(waves(tasks, slots) * per_task)

    def work_s(self, events: float) -> float:
        tasks = max(1, min(self.tasks, math.ceil(events))) if self.tasks > 0 else 1
        return self.task(events / tasks) * tasks


class BatchModel:
    """The batches of one query. ``observe`` each as it ends, then ask ``seconds``.

    >>> model = BatchModel()
    >>> for i, n in enumerate((100, 200, 400, 300, 250)):
    ...     stage = StageRun(tasks=8, task_s=8 * 0.02 + 0.01 * n, wall_s=4 * (0.02 + 0.01 * n / 8))
    ...     _ = model.observe(BatchRun(2.0 * i, 0.3 + stage.wall_s, n, slots=2, stages=(stage,)))
    >>> abs(model.seconds(800, slots=4) - (0.3 + 2 * (0.02 + 0.01 * 100))) < 0.05
    True
    """

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, int, int], deque[_Observation]] = {}
        self._seen = 0
        self._errors: deque[float] = deque(maxlen=ERRORS)
        self._stages: tuple[_Stage, ...] | None = None
        self._serial = Line(0.0, 0.0)

    def __len__(self) -> int:
        """Batches observed."""
        return self._seen

    @property
    def error(self) -> float | None:
        """Median relative error of the last predictions, each made before its batch was learned
        from; None before the first.
        """
        return statistics.median(map(abs, self._errors)) if self._errors else None

    @property
    def caution(self) -> float:
        """By what share batches outlast what was predicted, in three of four cases (0 to 0.5). A
        JVM that warms up makes batches shorter than predicted and asks for no caution.
        """
        recent = list(self._errors)[-RECENT:]
        return float(np.clip(np.quantile(recent, 0.75), 0.0, 0.5)) if recent else 0.0

    def observe(self, run: BatchRun) -> float | None:
        """Learn from a batch that ended; by what share it outlasted its prediction. Batches
        without events or with slots that changed meanwhile teach nothing.
        """
        if run.events <= 0 or run.duration_s <= 0 or not run.slots:
            return None
        error = None
        if self._seen >= LEAST:
            predicted_s = self.seconds(run.events, run.slots)
            error = (run.duration_s - predicted_s) / run.duration_s
            self._errors.append(error)
        self._remember(self._seen, run)
        self._seen += 1
        return error

    def _remember(self, number: int, run: BatchRun) -> None:
        magnitude = round(2 * math.log2(max(run.events, 1.0)))
        kind = len(run.stages), round(run.slots or 0), magnitude
        self._kinds.setdefault(kind, deque(maxlen=PER_KIND)).append(_Observation(number, run))
        self._stages = None

    def _everything(self) -> list[_Observation]:
        """All that is remembered, oldest first."""
        kept = [o for kind in self._kinds.values() for o in kind]
        return sorted(kept, key=lambda o: o.number)

    def seconds(self, events: float, slots: float) -> float:
        """How long a batch of ``events`` takes on ``slots``."""
        stages = self._fitted()
        return self._serial(events) + sum(s.seconds(events, slots) for s in stages)

    def work_s(self, events: float) -> float:
        """Task seconds of a batch of ``events``."""
        return sum(stage.work_s(events) for stage in self._fitted())

    def useful_slots(self) -> int | None:
        """Slots beyond which no stage gets faster: the most tasks of any stage; None when the work
        is divisible.
        """
        tasks = [stage.tasks for stage in self._fitted()]
        return max(tasks) if tasks and all(tasks) else None

    def _fitted(self) -> tuple[_Stage, ...]:
        if self._seen < LEAST:
            raise NotReady(
                f"{self._seen} of {LEAST} batches seen: how long a batch takes is not known"
            )
        if self._stages is None:
            self._stages = self._fit()
        return self._stages

    def _fit(self) -> tuple[_Stage, ...]:
        """All coefficients, from observations with the number of stages that is usual now."""
        everything = self._everything()
        shape = statistics.mode(len(o.run.stages) for o in reversed(everything[-2 * PER_KIND :]))
        known = [o for o in everything if len(o.run.stages) == shape]
        half_life = min(HALF_LIFE, max(2.0, self._seen / 4))
        weight = np.array([0.5 ** ((self._seen - o.number) / half_life) for o in known])
        runs = [o.run for o in known]
        stages = tuple(_fit_stage(runs, i, weight) for i in range(shape))
        events = np.array([r.events for r in runs])
        rest = np.array([max(1e-3, r.duration_s - sum(s.wall_s for s in r.stages)) for r in runs])
        if shape == 0:  # nothing but the batch's own time is known: all of it divides
            return (_fit_whole(runs, weight),)
        self._serial = robust_line(
            events, rest, weight, (Line(0.1, 0.0), Line(1.0, 0.05 / float(events.max())))
        )
        return stages

    def state(self) -> dict[str, Any]:
        """What was observed, as plain values."""
        return {
            "seen": self._seen,
            "errors": list(self._errors),
            "runs": [
                [
                    o.number,
                    [o.run.started_at, o.run.duration_s, o.run.events, o.run.slots],
                    [[s.tasks, s.task_s, s.wall_s] for s in o.run.stages],
                ]
                for o in self._everything()
            ],
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> BatchModel:
        """A model that goes on from ``state()``."""
        model = cls()
        for number, (started_at, duration_s, events, slots), stages in state["runs"]:
            parts = tuple(StageRun(*s) for s in stages)
            model._remember(int(number), BatchRun(started_at, duration_s, events, slots, parts))
        model._seen = int(state["seen"])
        model._errors = deque((float(e) for e in state["errors"]), maxlen=ERRORS)
        return model


def _fit_stage(runs: Sequence[BatchRun], index: int, weight: Array) -> _Stage:
    stages = [run.stages[index] for run in runs]
    tasks = np.array([max(1, s.tasks) for s in stages], dtype=float)
    per_task = np.array([max(1e-4, s.task_s) for s in stages]) / tasks
    share = np.array([run.events for run in runs]) / tasks
    fixed_s = FIXED_SHARE * float(np.median(per_task))
    task = robust_line(
        share,
        per_task,
        weight,
        (Line(fixed_s, 0.0), Line(fixed_s, 1e3 * float(per_task.max() / max(share.max(), 1e-9)))),
    )
    rounds = np.array([waves(s.tasks, r.slots or 1) for s, r in zip(stages, runs, strict=True)])
    wall = robust_line(
        rounds * per_task,
        np.array([max(1e-3, s.wall_s) for s in stages]),
        weight,
        (Line(0.02, 1.0), Line(0.2, 0.15)),
    )
    return _Stage(max(s.tasks for s in stages[-3 * PER_KIND :]), task, wall)


def _fit_whole(runs: Sequence[BatchRun], weight: Array) -> _Stage:
    """Batches without stages: duration = fixed + slope * events / slots."""
    x = np.array([run.events / (run.slots or 1) for run in runs])
    y = np.array([run.duration_s for run in runs])
    line = robust_line(x, y, weight, (Line(0.1, 0.0), Line(1.0, 1e3)))
    return _Stage(0, Line(0.0, line.slope), Line(line.fixed, 1.0))
