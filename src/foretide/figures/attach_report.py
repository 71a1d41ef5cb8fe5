"""What attach did, or would have done, in one page: executors, executor-seconds against a fixed
number, latency, and the batch model's error as the line that says how far to believe it.

The page is a replay: the planner of the live run is fed with the journal's snapshots once more, so
that the latency on the executors it asked for is predicted by the model as it stood then.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from foretide.errors import InvalidConfig, NotReady
from foretide.figures.dynamic_allocation import DynamicAllocation
from foretide.history import History
from foretide.journal import Run, read
from foretide.model import Decision
from foretide.plan.micro_batch import MicroBatch

CHANGES = 20
"""Changes that a page lists."""


@dataclass
class ExecutorAccount:
    """Executor-seconds of a run so far: those that were there, those that were asked for, those of
    the most executors of either, held all the time, and those that Spark's dynamic allocation would
    have held (an estimate).
    """

    dynamic: DynamicAllocation

    seconds: float = 0.0
    there: float = 0.0
    asked: float = 0.0
    allocated: float = 0.0
    most: int = 0
    events: float = 0.0
    within: float = 0.0
    model_error: float | None = None

    def add(self, decision: Decision) -> None:
        """One step of the loop; a step without a measurement counts for nothing."""
        snapshot, plan = decision.snapshot, decision.plan
        if snapshot is None:
            return
        running = len(snapshot.hosts or ()) or 1
        wanted = (plan.executors if plan else None) or running
        self.seconds += snapshot.window_s
        self.there += running * snapshot.window_s
        self.asked += wanted * snapshot.window_s
        self.allocated += self.dynamic.see(snapshot) * snapshot.window_s
        self.most = max(self.most, running, wanted)
        if snapshot.latency is not None:
            self.events += snapshot.latency.count
            self.within += snapshot.latency.within or 0.0
        if plan is not None and plan.model_error is not None:
            self.model_error = plan.model_error

    @property
    def fixed(self) -> float:
        return self.most * self.seconds

    @property
    def share(self) -> float | None:
        """Share of the events that were within the target; None when none left."""
        return self.within / self.events if self.events else None

    def saved(self, promised: float) -> float | None:
        """Share of the fixed executor-seconds that was not used; None when the promise was not
        kept: what was not served is no saving.
        """
        return self._saved_of(self.fixed, promised)

    def saved_of_dynamic(self, promised: float) -> float | None:
        """The same against dynamic allocation; negative when that would have held fewer."""
        return self._saved_of(self.allocated, promised)

    def _saved_of(self, other: float, promised: float) -> float | None:
        if self.share is None or self.share < promised or not other:
            return None
        return 1.0 - self.there / other

    def line(self, promised: float) -> str:
        """One line for a log: key=value, in this order."""

        def figure(value: float | None, digits: int = 3) -> str:
            return "-" if value is None else f"{value:.{digits}f}"

        return (
            f"seconds={self.seconds:.0f} executor_seconds={self.there:.0f} asked={self.asked:.0f} "
            f"fixed={self.fixed:.0f} share={figure(self.share, 4)} "
            f"saved={figure(self.saved(promised))} model_error={figure(self.model_error)} "
            f"dynamic={self.allocated:.0f} saved_dynamic={figure(self.saved_of_dynamic(promised))}"
        )


def account_of(run: Run) -> ExecutorAccount:
    """An empty account for a run of attach."""
    settings: Mapping[str, Any] = run.settings
    cores, most = int(settings.get("cores", 1)), int(settings.get("max_executors", 64))
    return ExecutorAccount(DynamicAllocation(cores, most))


class Change(NamedTuple):
    """A change of the number asked for, and why."""

    at_s: float
    before: int | None
    after: int
    why: str


@dataclass(frozen=True, slots=True)
class Replay:
    """What the planner expected of the executors it asked for: the promised share's latency in
    every window in which it had a model, and its changes.
    """

    latencies_s: tuple[float, ...]
    changes: tuple[Change, ...]


def replay(run: Run, decisions: Sequence[Decision]) -> Replay:
    """Feed the planner with the journal once more."""
    planner = _planner(run)
    history = History(run.topology)
    latencies: list[float] = []
    changes: list[Change] = []
    before: int | None = None
    for d in decisions:
        if d.snapshot is None or set(d.snapshot.samples) != set(run.topology.names):
            continue
        history.append(d.snapshot)
        if d.plan is None or not d.plan.executors:
            continue
        after = d.plan.executors
        if after != before:
            changes.append(Change(d.at - run.started_at, before, after, d.plan.reasons.get("", "")))
            before = after
        with suppress(NotReady):
            planner.plan(run.topology, history, d.forecasts)
            latencies.append(max(planner.latency_s(history, d.forecasts, after).values()))
    return Replay(tuple(latencies), tuple(changes))


def _planner(run: Run) -> MicroBatch:
    settings: Mapping[str, Any] = run.settings
    return MicroBatch(
        run.target_latency_s or 10.0,
        run.share or 0.99,
        int(settings.get("cores", 1)),
        int(settings.get("max_executors", 64)),
        "executors",
        settings.get("targets") or {},
    )


def attach_page(journal: Path) -> str:
    """One page of plain text about a run of attach."""
    path = journal / "journal.jsonl" if journal.is_dir() else journal
    run, decisions = read(path)
    if run.system != "attach":
        raise InvalidConfig(f"{path} is a run of {run.system}: see foretide report")
    account = account_of(run)
    for decision in decisions:
        account.add(decision)
    if not account.seconds:
        raise InvalidConfig(f"{path} holds no measured window: there is nothing to report")
    again = replay(run, decisions)
    lines = [
        f"Attach, mode {run.mode}: {', '.join(run.topology.names)}",
        *_cost_lines(run, account),
        *_latency_lines(run, account, again),
        "",
        f"Changes ({len(again.changes)}, the last {CHANGES}):",
    ]
    for at_s, before, after, why in again.changes[-CHANGES:]:
        lines.append(f"  {at_s:8.0f} s  {before or '-'} -> {after}: {why}")
    return "\n".join(lines) + "\n"


def _cost_lines(run: Run, account: ExecutorAccount) -> list[str]:
    would = "would have asked" if run.mode == "advise" else "asked"
    saved = account.saved(run.share or 0.99)
    return [
        f"{account.seconds / 3600:.2f} h measured, target {run.target_latency_s:g} s for "
        f"{100 * (run.share or 0.99):g} % of events",
        "",
        f"It {would} for {account.asked:.0f} executor-seconds; {account.there:.0f} were there.",
        f"Fixed at the most ({account.most} executors) they would be {account.fixed:.0f}: "
        f"{100 * (1 - account.asked / account.fixed):.0f} % fewer with what it asked for.",
        "Saved by what ran: "
        + ("none, the promise was not kept" if saved is None else f"{100 * saved:.0f} %"),
        f"Spark's dynamic allocation would have held about {account.allocated:.0f} "
        "executor-seconds (an estimate from the same batches).",
    ]


def _latency_lines(run: Run, account: ExecutorAccount, again: Replay) -> list[str]:
    share, error = account.share, account.model_error
    expected = "not known"
    if again.latencies_s:
        late = sum(v > (run.target_latency_s or math.inf) for v in again.latencies_s)
        expected = (
            f"{statistics.median(again.latencies_s):.1f} s in the median window; {late} of "
            f"{len(again.latencies_s)} windows over the target"
        )
    return [
        "Events within the target, as it ran: "
        + ("not measured" if share is None else f"{100 * share:.1f} %"),
        f"Expected latency on the executors it asked for: {expected}",
        "Median error of the batch model: "
        + ("not known" if error is None else f"{100 * error:.0f} %"),
    ]
