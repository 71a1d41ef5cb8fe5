"""Summary: a run made small enough to send between processes and to draw: its figures, series of
bounded length, its decisions.

Owns the step from a record to what a report shows. A long run is thinned: each point then stands
for several windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretide.figures.account import PROMISED
from foretide.figures.metrics import Figures, figures, optimum_cost, window_utilization
from foretide.figures.record import RunRecord
from foretide.figures.saving import saving
from foretide.model import Array, Choice, Decision, Sample, Snapshot

POINTS = 1000
DECISIONS = 200


@dataclass(frozen=True, slots=True)
class ReplicaChange:
    """One operator in one decision: what was asked and why."""

    operator: str
    before: int | None
    after: int
    why: str


@dataclass(frozen=True, slots=True)
class NotableDecision:
    """One decision worth showing: it changed something, or failed. ``at_s`` counts from the run's
    start.
    """

    at_s: float
    outcome: str
    changes: tuple[ReplicaChange, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Balance:
    """How evenly an operator's replicas were busy in some windows, all those with more than one
    replica at work.

    ``busy`` is the mean busy share of a window's busiest replica, its second busiest, and so on:
    sorted in every window, because a straggler is another replica every time. ``uneven`` is the
    mean of busiest over mean; 1 is even.
    """

    busy: tuple[float, ...]
    uneven: float


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """One run. Series have one value per point of ``at_s`` (seconds since the run's start, end of
    the point's windows).

    Rates, forecasts, replicas and utilization are means over a point's windows, backlog and
    latencies their maxima; NaN where nothing is known. ``balance`` has the whole run, its first and
    its last third for each operator whose replicas were measured one by one. ``short`` says by how
    much the run ran short of ``share``, the promised share of events, or of its need. ``choices``
    are what other shares would have cost, as the system worked it out last, in ``priced`` words.
    """

    figures: Figures
    optimum_cost: float
    cost_changes: float
    started_at: float
    window_s: float
    windows_per_point: int
    target_latency_s: float | None
    at_s: Array
    rate: Array
    forecast: Array
    backlog: Array
    utilization: Array
    hosts: Array
    latency_ms: Mapping[str, Array]
    replicas: Mapping[str, Array]
    need: Mapping[str, Array]
    optimum: Mapping[str, Array]
    balance: Mapping[str, tuple[Balance, Balance, Balance]]
    steps: tuple[NotableDecision, ...]
    steps_left_out: int
    short: str | None = None
    share: float = PROMISED
    shared_slots: bool = False
    choices: tuple[Choice, ...] = ()
    priced: str = ""

    @property
    def system(self) -> str:
        return self.figures.system


def summarize(record: RunRecord, points: int = POINTS, decisions: int = DECISIONS) -> Summary:
    """The record at no more than ``points`` points and with the last ``decisions`` steps worth
    showing.
    """
    windows = len(record.snapshots)
    per_point = max(1, -(-windows // points))
    names = record.topology.names
    result = figures(record)
    started_at = record.snapshots[0].at - record.window_s if windows else 0.0
    steps = [
        s
        for s in (_step(d, started_at, record.shared_slots) for d in record.decisions)
        if s is not None
    ]

    def mean(values: Array) -> Array:
        return _thin(values, per_point, np.nanmean)

    def highest(values: Array) -> Array:
        return _thin(values, per_point, np.nanmax)

    at_s = np.array([s.at - started_at for s in record.snapshots])
    return Summary(
        result,
        optimum_cost(record),
        record.account.changes_paid,
        started_at,
        record.window_s,
        per_point,
        record.target_latency_s,
        at_s=highest(at_s),
        rate=mean(record.rates()),
        forecast=mean(record.forecast_latest()),
        backlog=highest(
            np.array([sum(x.backlog for x in s.samples.values()) for s in record.snapshots])
        ),
        utilization=mean(
            np.array([u[0] if (u := window_utilization(s)) else np.nan for s in record.snapshots])
        ),
        hosts=mean(
            np.array([len(s.hosts) if s.hosts is not None else np.nan for s in record.snapshots])
        ),
        latency_ms={
            k: highest(_latency(record, k)) for k in ("mean_ms", "p50_ms", "p90_ms", "p99_ms")
        },
        replicas={n: mean(record.replicas(n).astype(float)) for n in names},
        need={n: mean(np.asarray(record.needs[n], dtype=float)) for n in names},
        optimum={n: mean(record.optimum[n].astype(float)) for n in names},
        balance=_balances(record),
        steps=tuple(steps[-decisions:]),
        steps_left_out=max(0, len(steps) - decisions),
        short=saving(record.account, result.slo_share).short,
        share=record.account.promise.least,
        shared_slots=record.shared_slots,
        choices=record.priced.choices if record.priced else (),
        priced=record.priced.reasons.get("", "") if record.priced else "",
    )


def _thin(values: Array, per_point: int, combine: Callable[..., Array]) -> Array:
    """One value per ``per_point`` windows; a point of NaN only stays NaN."""
    if per_point == 1 or not values.size:
        return values
    padded = np.full(-(-values.size // per_point) * per_point, np.nan)
    padded[: values.size] = values
    rows = padded.reshape(-1, per_point)
    known = np.isfinite(rows).any(axis=1)
    thin = np.full(len(rows), np.nan)
    thin[known] = combine(rows[known], axis=1)
    return thin


def _latency(record: RunRecord, key: str) -> Array:
    def value(s: Snapshot) -> float:
        return (
            np.nan if s.latency is None or s.latency.count == 0 else float(getattr(s.latency, key))
        )

    return np.array([value(s) for s in record.snapshots])


def balance(samples: Sequence[Sample], window_s: float) -> Balance | None:
    """The balance over windows of one operator; None when no window had two replicas and any work.

    >>> windows = [Sample(8, 8, 0, 2, replica_busy_s=busy_s) for busy_s in ((1.0, 3.0), (2.0, 2.0))]
    >>> balance(windows, 10.0)
    Balance(busy=(0.25, 0.15), uneven=1.25)
    """
    rows = [
        np.sort(busy_s)[::-1]
        for x in samples
        if len(busy_s := np.array(x.replica_busy_s or ())) > 1 and busy_s.sum() > 0
    ]
    if not rows:
        return None
    total_s, windows = np.zeros(max(map(len, rows))), np.zeros(max(map(len, rows)))
    for row in rows:
        total_s[: len(row)] += row
        windows[: len(row)] += 1
    return Balance(
        tuple((total_s / windows / window_s).tolist()),
        float(np.mean([row[0] / row.mean() for row in rows])),
    )


def _balances(record: RunRecord) -> dict[str, tuple[Balance, Balance, Balance]]:
    """Whole run, first third, last third; operators that have all of them."""
    balances = {}
    for name in record.topology.names:
        samples = [s.samples[name] for s in record.snapshots]
        part = max(1, len(samples) // 3)
        whole, first, last = (
            balance(some, record.window_s) for some in (samples, samples[:part], samples[-part:])
        )
        if whole and first and last:
            balances[name] = whole, first, last
    return balances


def _step(decision: Decision, started_at: float, shared_slots: bool) -> NotableDecision | None:
    """A decision as a person reads it; None when it changed nothing and nothing went wrong."""
    at_s = decision.at - started_at
    if decision.outcome == "failed":
        return NotableDecision(at_s, "failed", (), decision.error or "")
    if (
        decision.outcome not in ("applied", "advised")
        or decision.plan is None
        or decision.snapshot is None
    ):
        return None
    plan, samples, hosts = decision.plan, decision.snapshot.samples, decision.snapshot.hosts
    note = plan.reasons.get("", "")
    changes = [
        ReplicaChange(n, samples[n].replicas if n in samples else None, r, plan.reasons.get(n, ""))
        for n, r in plan.replicas.items()
        if not shared_slots and (n not in samples or samples[n].replicas != r)
    ]
    if plan.executors is not None and hosts is not None and plan.executors != len(hosts):
        changes.append(ReplicaChange("executors", len(hosts), plan.executors, note))
        note = ""
    return NotableDecision(at_s, decision.outcome, tuple(changes), note)
