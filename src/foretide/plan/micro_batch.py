"""Executors that keep micro-batches within a latency target: the planner for queries that Foretide
may watch but not change.

For every query a ``BatchModel`` is learned from its batches. The plan is the least number of
executors with which every query, on the slots that the others leave free, keeps its promise at the
rate that is expected when an executor asked for now would work, and works off what waits beyond the
usual within the target. Executors that add nothing are never asked for; the reason says which limit
holds instead.

Up at once; down only when fewer would do even at ``SLACK`` times the rate, and not before an idle
executor has cost as much as starting another one (its lead time, in executor-seconds).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import BatchRun, Forecast, Plan, Sample, Snapshot, StageRun
from foretide.plan.batch_latency import BEST_SHARE, Demand, Outlook, keeps, limit_sentence, outlook
from foretide.plan.batch_model import BatchModel
from foretide.plan.promise.level import Level
from foretide.topology import Topology

HEADROOM = 1.05
"""Executors are added when they would not do at this multiple of the expected rate ..."""
SLACK = 1.4
"""... and given back when fewer would do at this multiple: a query whose batches already outlast
its trigger has nothing to meet a rise with until another executor works.
"""
UNKNOWN_LEAD_S = 30.0
"""Lead time of an executor while none was measured."""
WAITING = 0.8
"""Part of the target that events may wait for an executor on its way."""
EVIDENCE = 20.0
"""Lead times that the history must cover before the forecast's upper quantile counts: in a shorter
one a single jump is the quantile, and would be planned for long after it has passed.
"""
LAST = 20
"""Windows over which a limit on the events of a batch is looked for."""


@dataclass(frozen=True, slots=True)
class _Query:
    """One query in one step."""

    name: str
    model: BatchModel
    demand: Demand


class MicroBatch:
    """Slots per query and executors for all of them.

    ``unit`` "slots": replicas are set as well; "executors": queries are only watched, replicas stay
    as they are. ``targets`` and ``priorities`` are by query: where no number of executors suits
    all, the queries of the lowest priority, among them those with the longest targets, give way
    first.
    """

    def __init__(
        self,
        target_s: float = 10.0,
        share: float = 0.99,
        cores: int = 1,
        max_executors: int = 64,
        unit: Literal["slots", "executors"] = "slots",
        targets: Mapping[str, float] | None = None,
        priorities: Mapping[str, float] | None = None,
    ) -> None:
        self.target_s = target_s
        self.share = share
        self.cores = cores
        self.max_executors = max_executors
        self.unit = unit
        self.targets = targets or {}
        self.priorities = priorities or {}
        self._models: dict[str, BatchModel] = {}
        self._level = Level(share)
        self._learned_at = -math.inf
        self._asked: int | None = None
        self._wanted: deque[tuple[float, int]] = deque(maxlen=1000)

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        latest = history.latest
        self._learn(history)
        if latest.latency is not None:
            self._level.see(latest.latency.count, latest.latency.within)
        queries = [self._query(n, history, forecasts.get(n)) for n in topology.names]
        executors, waits = self._executors(queries, latest)
        replicas, reasons = {}, {}
        for q in queries:
            free = self._free(q, queries, executors * self.cores)
            replicas[q.name] = (
                max(1, latest.samples[q.name].replicas)
                if self.unit == "executors"
                else max(1, math.ceil(self._slots(q) * (1 - 1e-9)))
            )
            reasons[q.name] = _reason(q, free, self.cores)
        reasons[""] = self._summary(queries, executors, latest) + waits
        errors = [q.model.error for q in queries if q.model.error is not None]
        return Plan(replicas, reasons, executors, model_error=max(errors, default=None))

    def latency_s(
        self, history: History, forecasts: Mapping[str, Forecast], executors: int
    ) -> dict[str, float]:
        """The latency that the promised share of each query's events keeps on ``executors``, at the
        expected rates; infinite where a query does not keep up.
        """
        names = history.topology.names
        queries = [self._query(n, history, forecasts.get(n)) for n in names]
        slots = executors * self.cores
        return {q.name: self._view(q, queries, slots).latency_s for q in queries}

    def state(self) -> dict[str, Any]:
        models = {name: model.state() for name, model in self._models.items()}
        return {"models": models, **self._level.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._models = {n: BatchModel.restored(s) for n, s in state["models"].items()}
        self._level.restore(state)

    def _learn(self, history: History) -> None:
        """Batches of the windows that were not learned from yet. Slots that other queries kept busy
        were not there for this one.
        """
        for snapshot in history.recent(LAST):
            if snapshot.at <= self._learned_at:
                continue
            self._learned_at = snapshot.at
            for name, sample in snapshot.samples.items():
                model = self._models.setdefault(name, BatchModel())
                others = sum(
                    (s.busy_s or 0.0) / snapshot.window_s
                    for n, s in snapshot.samples.items()
                    if n != name
                )
                for run in _runs(sample, snapshot.at):
                    slots = None if run.slots is None else max(0.5, run.slots - others)
                    model.observe(
                        BatchRun(run.started_at, run.duration_s, run.events, slots, run.stages)
                    )

    def _query(self, name: str, history: History, ahead: Forecast | None) -> _Query:
        model = self._models.get(name)
        if model is None or not len(model):
            raise NotReady(f"query '{name}' has not finished a batch yet: its cost is unknown")
        latest = history.latest
        sample = latest.samples[name]
        target_s = self.targets.get(name, self.target_s)
        demand = Demand(
            max(sample.arrived / latest.window_s, self._expected(ahead, history, target_s)),
            sample.backlog,
            _trigger_s(history, name),
            _batch_limit(history, name),
            target_s,
            self.share,
        )
        return _Query(name, model, demand)

    def _expected(self, ahead: Forecast | None, history: History, target_s: float) -> float:
        """The highest rate until an executor asked for now works. Where events may wait that long,
        or jumps of the load are not yet told from its usual spread, the forecast's mean is enough;
        else it is raised towards the upper quantile by the level that the measured share of events
        in time moves.
        """
        if ahead is None:
            return 0.0
        latest = history.latest
        lead_s = self._lead_s(latest)
        steps = math.ceil(lead_s / latest.window_s) + 1
        mean = np.array(ahead.mean[:steps])
        known_s = len(history.recent()) * latest.window_s
        if ahead.upper is None or lead_s <= WAITING * target_s or known_s < EVIDENCE * lead_s:
            return float(mean.max())
        upper = np.array(ahead.upper[:steps])
        return float((mean + self._level.value * (upper - mean)).max())

    @staticmethod
    def _lead_s(latest: Snapshot) -> float:
        return UNKNOWN_LEAD_S if latest.lead_s is None else latest.lead_s

    def _executors(self, queries: list[_Query], latest: Snapshot) -> tuple[int, str]:
        """How many to have now, and what is waited for, as the end of a sentence."""
        running = max(1, round((latest.slots or self.cores) / self.cores))
        if self._asked is None:
            self._asked = min(running, self.max_executors)
        if not any(s.arrived for s in latest.samples.values()):
            return self._asked, (
                f"; nothing arrives at any source: executors stay at {self._asked}, since an "
                "outage before the sources looks the same"
            )
        up = self._least(queries, HEADROOM)
        down = self._least(queries, SLACK)
        keep_s = self._lead_s(latest)
        self._wanted.append((latest.at, down))
        while self._wanted[0][0] < latest.at - keep_s - 1e-6:
            self._wanted.popleft()
        recent = max(wanted for _, wanted in self._wanted)
        waits = ""
        if up > self._asked:
            self._asked = up
        elif down < self._asked:
            if recent < self._asked and self._kept_for(latest) >= keep_s:
                self._asked = recent
            else:
                waits = (
                    f"; {down} would do, held at {self._asked}: an idle executor costs less than "
                    f"starting one again ({keep_s:.0f} s)"
                )
        return self._asked, waits

    def _kept_for(self, latest: Snapshot) -> float:
        """Seconds that the proposals of ``_wanted`` cover."""
        return latest.at - self._wanted[0][0] + latest.window_s

    def _least(self, queries: list[_Query], factor: float) -> int:
        """The least executors that keep every promise at ``factor`` times the rates; when none
        does, those beyond which nothing gets faster.
        """
        scaled = [_Query(q.name, q.model, q.demand.times(factor)) for q in queries]

        def good(executors: int) -> bool:
            slots = executors * self.cores
            return all(keeps(self._view(q, scaled, slots), q.demand) for q in scaled)

        if good(self.max_executors):
            return _first(good, self.max_executors)
        best = {
            q.name: self._view(q, scaled, self.max_executors * self.cores).throughput
            for q in scaled
        }

        def as_fast(executors: int) -> bool:
            slots = executors * self.cores
            return all(
                self._view(q, scaled, slots).throughput >= BEST_SHARE * best[q.name] for q in scaled
            )

        return _first(as_fast, self.max_executors)

    def _view(self, query: _Query, queries: list[_Query], slots: float) -> Outlook:
        return outlook(query.model, query.demand, self._free(query, queries, slots))

    def _free(self, query: _Query, queries: list[_Query], slots: float) -> float:
        """Slots that the other queries leave free on average, never less than its share of the
        work.
        """
        others = sum(_busy_slots(q) for q in queries if q.name != query.name)
        own = max(_busy_slots(query), 1e-3)
        return max(slots - others, slots * own / (own + others))

    def _slots(self, query: _Query) -> float:
        """Slots of its own that keep one query's promise."""
        most = self.max_executors * self.cores
        return _first(
            lambda s: keeps(outlook(query.model, query.demand.times(HEADROOM), s), query.demand),
            most,
        )

    def _summary(self, queries: list[_Query], executors: int, latest: Snapshot) -> str:
        busy = sum(_busy_slots(q) for q in queries)
        text = (
            f"all queries together keep {busy:.2f} slots busy; {executors} executor"
            f"{'' if executors == 1 else 's'} with {self.cores} "
            f"core{'' if self.cores == 1 else 's'} each"
        )
        text += f" (another one would work in {self._lead_s(latest):.0f} s)"
        short = [
            q
            for q in queries
            if not keeps(self._view(q, queries, self.max_executors * self.cores), q.demand)
        ]
        if short and executors == self.max_executors:
            text += f"; held at the maximum of {self.max_executors}"
            if len(queries) > 1:
                text += f", {self._yielding(queries)} gives way first"
        return text

    def _yielding(self, queries: list[_Query]) -> str:
        return min(
            queries, key=lambda q: (self.priorities.get(q.name, 0.0), -q.demand.target_s, q.name)
        ).name


def _first(good: Callable[[int], bool], most: int) -> int:
    """The least n in 1..most for which ``good`` holds, given that it holds for all above; ``most``
    when it holds for none.
    """
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if good(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _busy_slots(query: _Query) -> float:
    events = max(1.0, query.demand.rate * max(query.demand.trigger_s, 1.0))
    return query.demand.rate * query.model.work_s(events) / events


def _runs(sample: Sample, at: float) -> tuple[BatchRun, ...]:
    """The window's batches; where only their mean is known, one that stands for them."""
    if sample.batch_runs or not sample.batches or sample.batch_s is None:
        return sample.batch_runs
    stages: tuple[StageRun, ...] = ()
    if sample.busy_s:
        task_s = sample.busy_s / sample.batches
        wall_s = min(sample.batch_s, task_s / max(1, sample.replicas))
        stages = (StageRun(0, task_s, wall_s),)
    mean = BatchRun(
        at, sample.batch_s, sample.processed / sample.batches, max(1, sample.replicas), stages
    )
    return (mean,) * 2


def _trigger_s(history: History, name: str) -> float:
    """The query's trigger where it is known, else the shortest time between two batches seen: a
    busy query's batches stretch, its trigger does not.
    """
    sample = history.latest.samples[name]
    if sample.trigger_s is not None:
        return sample.trigger_s
    seen = [
        s.window_s / batches for s in history.recent(LAST) if (batches := s.samples[name].batches)
    ]
    return min(seen, default=0.0)


def _batch_limit(history: History, name: str) -> float:
    """The most events that a batch may take in, where batches were cut off: the largest of those
    that left events waiting; infinite when none did.
    """
    runs = [r for s in history.recent(LAST) for r in s.samples[name].batch_runs]
    cut = [r.events for r in runs if r.left and r.left > 0.05 * r.events]
    return max(cut) if cut and max(cut) >= max(r.events for r in runs) else math.inf


def _reason(query: _Query, slots: float, cores: int) -> str:
    demand, model = query.demand, query.model
    view = outlook(model, demand, slots)
    more = outlook(model, demand, slots + cores)
    text = (
        f"{demand.rate:.1f} events/s expected; a batch of {view.events:.0f} events takes "
        f"{view.batch_s:.1f} s on {slots:.3g} slot{'' if slots == 1 else 's'}, "
        f"{model.seconds(view.events, slots + cores):.1f} s on {slots + cores:.3g}"
    )
    if math.isfinite(view.latency_s):
        text += (
            f"; {100 * demand.share:g} % of events are done within {view.latency_s:.1f} s "
            f"(target {demand.target_s:g} s)"
        )
    else:
        text += (
            f"; it does {view.throughput:.0f} events/s, "
            f"{more.throughput:.0f} with one executor more"
        )
    if view.drain_s > 0:
        drain = f"are worked off in {view.drain_s:.0f} s"
        if not math.isfinite(view.drain_s):
            drain = "become more"
        text += f"; {demand.backlog:.0f} events wait and {drain}"
    limit = "" if keeps(view, demand) else limit_sentence(model, demand, slots)
    return f"{text}; {limit}" if limit else text
