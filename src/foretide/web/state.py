"""RunState: everything the page shows, from the journal's lines, in bounded memory.

Pure: lines in, records out. It knows no file, no clock and no network.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from foretide.figures.account import Account, Promise
from foretide.figures.demand import ReplicaDemand, WindowArrays
from foretide.figures.record import has_shared_slots
from foretide.figures.saving import saving
from foretide.journal import Run
from foretide.model import Array, Latency, Mode
from foretide.quantities import merged_latency
from foretide.web.lines import DecisionLine, PlanLine, SnapshotLine
from foretide.web.records import (
    ChoicesNow,
    Columns,
    Cost,
    LatencyNow,
    LoadOutlook,
    Now,
    OperatorInfo,
    OperatorNow,
    Range,
    RunInfo,
)
from foretide.web.series import RecentSeries, Rule, WholeSeries

RECENT_POINTS = 600
WHOLE_POINTS = 1024
OVERALL: dict[str, Rule] = {
    "load": "mean",
    "forecast": "mean",
    "upper": "max",
    "replicas": "max",
    "need": "max",
    "planned": "max",
    "backlog": "max",
    "processed": "mean",
    "executors": "max",
    "p50_ms": "max",
    "p90_ms": "max",
    "p99_ms": "max",
    "cost": "last",
    "seconds": "last",
}
PER_OPERATOR: dict[str, Rule] = {
    "rate": "mean",
    "replicas": "max",
    "need": "max",
    "planned": "max",
    "utilization": "mean",
    "backlog": "max",
    "processed": "mean",
    "batch_s": "max",
}


class Journalled(msgspec.Struct):
    """What is known of the journal file besides its lines: see ``Now``."""

    asked_mode: Mode | None = None
    live: bool = False
    read_share: float = 1.0
    skipped_lines: int = 0


class RunState:
    """One run as the page shows it. ``add`` takes its decisions in the order of the journal."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.names = run.topology.names
        self._edges = run.topology.edges
        rules: list[Rule] = [
            *OVERALL.values(),
            *(r for r in PER_OPERATOR.values() for _ in self.names),
        ]
        self._recent = RecentSeries(len(rules), RECENT_POINTS)
        self._whole = WholeSeries(rules, WHOLE_POINTS)
        self._demand = ReplicaDemand(run.topology)
        promise = Promise(run.target_latency_s, run.share)
        self.shared_slots = has_shared_slots(run)
        self._account = Account(run.topology, run.prices, promise, shared=self.shared_slots)
        self._ahead: list[tuple[float, float]] = []
        self._planned = np.full(len(self.names), np.nan)
        self._values = np.full(len(rules), np.nan)
        self._feeds: Array = np.full(len(self._edges), np.nan)
        self._latency: Latency | None = None
        self._snapshot: SnapshotLine | None = None
        self._sources = [self.names.index(n) for n in run.topology.sources]
        self._outcomes: Counter[str] = Counter()
        self.last: DecisionLine | None = None
        self._plan: PlanLine | None = None
        self._choices: ChoicesNow | None = None

    def add(self, decision: DecisionLine) -> None:
        """One window of the run."""
        values = np.full(len(self._values), np.nan)
        overall = dict.fromkeys(OVERALL, np.nan)
        if self._ahead:
            overall["forecast"], overall["upper"] = self._ahead.pop(0)
        self._plan = decision.plan or self._plan
        if decision.proposed is not None and decision.proposed.choices:
            self._choices = _choices(decision.at, decision.proposed)
        if decision.plan is not None and not self.shared_slots:
            self._planned = np.array(
                [decision.plan.replicas.get(n, np.nan) for n in self.names], dtype=float
            )
        if decision.snapshot is not None:
            overall.update(self._measure(decision.snapshot, values))
        if decision.forecasts:
            self._look_ahead(decision)
        values[: len(OVERALL)] = list(overall.values())
        self._recent.append(decision.at, values)
        self._whole.append(decision.at, values)
        if decision.snapshot is not None:
            self._values = values
        self._outcomes[decision.outcome] += 1
        self.last = decision

    def _measure(self, snapshot: SnapshotLine, values: Array) -> dict[str, float]:
        """Account for a window; its values per operator go into ``values``, the others are
        returned.
        """
        window = WindowArrays.of(self.run.topology, snapshot.window_s, snapshot.samples)
        need, latency = self._demand.add(window), self._end_to_end(snapshot)
        self._account.add(window, need, latency)
        self._feeds = window.sent / window.seconds
        rate = window.arrived / window.seconds
        values[len(OVERALL) :] = np.concatenate(
            (
                *(rate, window.replicas, need, self._planned, window.utilization, window.backlog),
                window.processed / window.seconds,
                [_or_nan(snapshot.samples[n].batch_s) for n in self.names],
            )
        )
        totals = {
            "load": window.offered.sum() / window.seconds,
            "replicas": self._total(window.replicas),
            "need": need.sum(),
            "planned": self._total(self._planned),
            "backlog": window.backlog.sum(),
            "processed": window.processed[self._sources].sum() / window.seconds,
            "executors": np.nan if snapshot.hosts is None else len(snapshot.hosts),
            "cost": self._account.paid,
            "seconds": self._account.seconds,
        }
        self._snapshot = snapshot
        if latency is not None:
            self._latency = latency
            totals.update(p50_ms=latency.p50_ms, p90_ms=latency.p90_ms, p99_ms=latency.p99_ms)
        return totals

    def _total(self, replicas: Array) -> float:
        """Replicas of all operators; slots that they share count once."""
        return float(replicas.max() if self.shared_slots else replicas.sum())

    def _end_to_end(self, snapshot: SnapshotLine) -> Latency | None:
        if snapshot.latency is not None:
            return snapshot.latency
        return merged_latency([snapshot.samples[n].latency for n in self.run.topology.sinks])

    def _look_ahead(self, decision: DecisionLine) -> None:
        forecasts = [decision.forecasts.get(n) for n in self.run.topology.sources]
        known = [f for f in forecasts if f is not None]
        if len(known) < len(forecasts):
            return
        mean = [sum(steps) for steps in zip(*(f.mean for f in known), strict=False)]
        uppers = [f.upper for f in known if f.upper is not None]
        upper = (
            [sum(steps) for steps in zip(*uppers, strict=False)]
            if len(uppers) == len(known)
            else [np.nan] * len(mean)
        )
        self._ahead = list(zip(mean, upper, strict=True))

    def info(self) -> RunInfo:
        run = self.run
        target = run.target_latency_s
        return RunInfo(
            run.name,
            run.system,
            run.window_s,
            run.started_at,
            None if target is None else target * 1000,
            [
                OperatorInfo(
                    o.name,
                    o.inputs,
                    o.name in run.topology.sources,
                    o.stateful,
                    o.min_replicas,
                    o.max_replicas,
                )
                for o in run.topology.operators
            ],
            run.share,
            self.shared_slots,
            _web_address(run.settings.get("spark_ui")),
        )

    def now(self, file: Journalled, decisions: int) -> Now:
        """Where the run stands after the last decision added."""
        v = dict(zip(OVERALL, self._values, strict=False))
        last, ahead, plan = self.last, self._ahead, self._plan
        upper = [u for _, u in ahead if not np.isnan(u)]
        return Now(
            at=last.at if last else None,
            windows=self._account.windows,
            seconds=self._account.seconds,
            decisions=decisions,
            outcome=last.outcome if last else None,
            error=last.error if last else None,
            mode=last.mode if last else self.run.mode,
            asked_mode=file.asked_mode,
            live=file.live,
            read_share=file.read_share,
            skipped_lines=file.skipped_lines,
            load=_known(v["load"]),
            replicas=_whole(v["replicas"]),
            need=_whole(v["need"]),
            planned=_whole(v["planned"]),
            backlog=_known(v["backlog"]),
            processed=_known(v["processed"]),
            executors=_whole(v["executors"]),
            executors_planned=plan.executors if plan else None,
            model_error=plan.model_error if plan else None,
            slots=self._snapshot.slots if self._snapshot else None,
            lead_s=self._snapshot.lead_s if self._snapshot else None,
            latency=self._latency_now(),
            outlook=LoadOutlook([m for m, _ in ahead], upper if len(upper) == len(ahead) else None)
            if ahead
            else None,
            choices=self._choices,
            cost=self._cost(),
            outcomes=dict(self._outcomes),
            operators=self._operators_now() if self._account.windows else {},
        )

    def _latency_now(self) -> LatencyNow | None:
        latency = self._latency
        if latency is None:
            return None
        return LatencyNow(
            latency.p50_ms,
            latency.p90_ms,
            latency.p99_ms,
            self._account.slo_share(),
        )

    def _cost(self) -> Cost:
        account = self._account
        outcome = saving(account, account.slo_share())
        return Cost(account.paid, account.static_peak, outcome.share, outcome.short)

    def _operators_now(self) -> dict[str, OperatorNow]:
        table = self._values[len(OVERALL) :].reshape(len(PER_OPERATOR), -1)
        rate, replicas, need, planned, utilization, backlog, processed, _ = table
        feeds: dict[str, dict[str, float]] = {n: {} for n in self.names}
        for (producer, consumer), events in zip(self._edges, self._feeds.tolist(), strict=True):
            feeds[producer][consumer] = events
        samples = self._snapshot.samples if self._snapshot else {}
        return {
            n: OperatorNow(
                int(replicas[i]),
                _whole(planned[i]),
                _whole(need[i]),
                _known(utilization[i]),
                float(backlog[i]),
                float(rate[i]),
                feeds[n],
                float(processed[i]),
                samples[n].batches,
                samples[n].batch_s,
                samples[n].state_rows,
                samples[n].state_bytes,
                samples[n].watermark_at,
            )
            for i, n in enumerate(self.names)
        }

    def columns(self, over: Range, operator: str | None = None, last: int | None = None) -> Columns:
        """A series, all of the topology or of one operator; ``last`` keeps only so many points."""
        data = (self._recent if over == "recent" else self._whole).columns()
        data = data[:, -last:] if last else data
        if operator is None:
            rows = {name: 1 + i for i, name in enumerate(OVERALL)}
        else:
            first = 1 + len(OVERALL) + self.names.index(operator)
            rows = {name: first + i * len(self.names) for i, name in enumerate(PER_OPERATOR)}
        stride = 1 if over == "recent" else self._whole.stride
        return Columns(
            over,
            operator,
            stride,
            data[0].tolist(),
            {name: _short(data[row]) for name, row in rows.items()},
        )


def nothing_yet(file: Journalled) -> Now:
    """Before the journal's first line."""
    return Now(
        asked_mode=file.asked_mode,
        live=file.live,
        read_share=file.read_share,
        skipped_lines=file.skipped_lines,
        cost=Cost(0.0, None, None, None),
    )


def _choices(at: float, plan: PlanLine) -> ChoicesNow:
    sentence = msgspec.json.decode(plan.reasons, type=dict[str, str]).get("", "")
    costs = [c.cost for c in plan.choices]
    return ChoicesNow(at, sentence, [c.share for c in plan.choices], costs)


def _web_address(value: object) -> str | None:
    """An http address, or None: a page links nothing else.

    >>> _web_address("http://driver:4040"), _web_address("javascript:alert(1)")
    ('http://driver:4040', None)
    """
    text = value if isinstance(value, str) else ""
    return text if text.startswith(("http://", "https://")) else None


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _whole(value: float) -> int | None:
    return None if np.isnan(value) else int(value)


def _short(values: Array) -> list[float | None]:
    """Six significant digits are more than a chart can show, and half the bytes."""
    return [None if v != v else float(f"{v:.6g}") for v in values.tolist()]
