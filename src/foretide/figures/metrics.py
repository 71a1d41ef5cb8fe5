"""One definition of every reported figure, computed from the record of a simulated or a live run.

A figure that was not measured is None.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from foretide.figures.record import RunRecord, end_to_end
from foretide.figures.saving import saving
from foretide.model import Array, Snapshot
from foretide.plan.optimum import optimal_schedule
from foretide.quantities import QUANTILES, cost, merged_latency, percentiles

__all__ = [
    "Figures",
    "RunRecord",
    "degradation",
    "figures",
    "optimum_cost",
    "through",
    "window_utilization",
]


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of one run; names and order are those of ``foretide compare --json``.

    cost: schedule cost W summed over operators (BGElasor, section 4.2). cost_ratio: cost over the
    clairvoyant optimum, which never runs below the need; a system that does can be below 1.
    target_cost_ratio: cost over the least that keeps the promised share within the latency target.
    replica_seconds: replicas times time. adaptations: windows in which some operator's replicas
    changed. saved_cost: cost saved against every operator's peak need all the time, starts and
    stops included; saved_resources: the same in replica time alone (PA-SPS). Both are None for a
    run that ran short (``foretide.figures.saving``). throughput_degradation, processed_share,
    latency, input_mape, replica_mape: PA-SPS, section 4.2. slo_share: events within the latency
    target, of those that left, were dropped or are overdue. utilization: FUGU, section V: mean over
    windows of the mean and of the largest utilization of hosts, or of operators where no hosts are
    known. need_share: replica time that ran, of what the load needed.
    """

    system: str
    cost: float | None = None
    cost_ratio: float | None = None
    target_cost_ratio: float | None = None
    replica_seconds: float | None = None
    adaptations: int | None = None
    saved_resources: float | None = None
    throughput_degradation: float | None = None
    processed_share: float | None = None
    latency_mean_ms: float | None = None
    latency_p50_ms: float | None = None
    latency_p90_ms: float | None = None
    latency_p99_ms: float | None = None
    slo_share: float | None = None
    input_mape: float | None = None
    replica_mape: float | None = None
    utilization_mean: float | None = None
    utilization_max: float | None = None
    need_share: float | None = None
    saved_cost: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def figures(record: RunRecord) -> Figures:
    """Every figure of a run; a run without a measured window has none."""
    if not record.snapshots:
        return Figures(record.system)
    account, best, slo_share = record.account, optimum_cost(record), _slo_share(record)
    saved = saving(account, slo_share)
    in_, out = through(record)
    mean_ms, p50, p90, p99 = _latency(record)
    utilization_mean, utilization_max = _utilization(record)
    return Figures(
        record.system,
        cost=account.paid,
        cost_ratio=account.paid / best if best else None,
        replica_seconds=account.replica_seconds,
        adaptations=account.adaptations,
        saved_resources=saved.replica_time,
        throughput_degradation=degradation(in_, out),
        processed_share=_share(float(out.sum()), float(in_.sum())),
        latency_mean_ms=mean_ms,
        latency_p50_ms=p50,
        latency_p90_ms=p90,
        latency_p99_ms=p99,
        slo_share=slo_share,
        input_mape=_mean_error(record.forecast_next(), record.rates()),
        replica_mape=_replica_mape(record),
        utilization_mean=utilization_mean,
        utilization_max=utilization_max,
        need_share=account.need_share,
        saved_cost=saved.share,
    )


def optimum_cost(record: RunRecord) -> float:
    """W of the clairvoyant optimum, summed over operators; for operators that share task slots, of
    the optimum for their needs together.
    """
    names = record.topology.names
    before = {n: record.before(n) for n in names}
    schedules = record.optimum
    if record.shared_slots and names:
        together = np.sum([np.nan_to_num(record.needs[n], nan=1.0) for n in names], axis=0)
        most = max(record.topology[n].max_replicas for n in names)
        prices = record.prices.per_window(record.window_s)
        schedules = {names[0]: optimal_schedule(together, prices, before[names[0]], most)}
    return sum(
        cost(float(s @ record.seconds), np.diff(s, prepend=before[n]), record.prices)
        for n, s in schedules.items()
    )


def _mean_error(guess: Array, truth: Array) -> float | None:
    """Mean of |guess - truth| / truth over the windows where both are known and truth is not 0."""
    known = np.isfinite(guess) & np.isfinite(truth) & (truth > 0)
    errors = np.abs(guess[known] - truth[known]) / truth[known]
    return float(np.mean(errors)) if known.any() else None


def degradation(offered: Array, out: Array) -> float | None:
    """Mean over windows of |in - out| / max(in, out).

    PA-SPS divides by what came in. A window that drains a queue can process many times that, so one
    such window could outweigh all others and the mean exceed 100 %; divided by the larger of the
    two, every window counts between 0 and 1. Where no more leaves than came in, both are the same.

    >>> degradation(np.array([100.0, 100.0]), np.array([70.0, 400.0]))
    0.525
    """
    most = np.maximum(offered, out)
    known = most > 0
    return float(np.mean(np.abs(offered - out)[known] / most[known])) if known.any() else None


def through(record: RunRecord) -> tuple[Array, Array]:
    """Per window: events that should leave the topology for what was offered, and events that its
    last operators processed.
    """
    ends = record.topology.sinks or record.topology.names
    out = np.array([sum(s.samples[n].processed for n in ends) for s in record.snapshots])
    return np.array([record.account.should_leave(w.offered) for w in record.windows]), out


def _share(part: float, whole: float) -> float | None:
    """``part / whole``; all of it is exactly 1, whatever rounding made of the sums."""
    if whole <= 0:
        return None
    return 1.0 if math.isclose(part, whole, rel_tol=1e-9) else part / whole


def _replica_mape(record: RunRecord) -> float | None:
    errors = [
        _mean_error(record.replicas(n).astype(float), np.asarray(record.needs[n], dtype=float))
        for n in record.topology.names
    ]
    known = [e for e in errors if e is not None]
    return float(np.mean(known)) if known else None


def _latency(record: RunRecord) -> tuple[float | None, float | None, float | None, float | None]:
    """Mean, p50, p90, p99. From window summaries without sketches only the mean is exact, so only
    it is given.
    """
    values, weights = record.latencies_ms, record.latency_weights
    if values is not None and values.size:
        p50, p90, p99 = percentiles(values, QUANTILES, weights)
        return float(np.average(values, weights=weights)), p50, p90, p99
    whole = merged_latency([end_to_end(record.topology, s) for s in record.snapshots])
    if whole is None:
        return None, None, None, None
    if whole.sketch is None:
        return whole.mean_ms, None, None, None
    return whole.mean_ms, whole.p50_ms, whole.p90_ms, whole.p99_ms


def _slo_share(record: RunRecord) -> float | None:
    values, target_s = record.latencies_ms, record.target_latency_s
    if values is None or target_s is None:
        return record.account.slo_share()
    weights = np.ones(values.size) if record.latency_weights is None else record.latency_weights
    target_ms = target_s * 1000 * (1 + 1e-6)  # latencies are kept as 32-bit numbers
    within = float(weights[values <= target_ms].sum())
    return record.account.slo_share(within, float(weights.sum()))


def _utilization(record: RunRecord) -> tuple[float | None, float | None]:
    per_window = [u for u in (window_utilization(s) for s in record.snapshots) if u is not None]
    if not per_window:
        return None, None
    means, highest = zip(*per_window, strict=True)
    return float(np.mean(means)), float(np.mean(highest))


def window_utilization(snapshot: Snapshot) -> tuple[float, float] | None:
    """Mean and largest utilization of the hosts, or of the operators where no hosts are known; None
    when neither was measured.
    """
    if snapshot.hosts:
        by_host = [h.utilization for h in snapshot.hosts]
        return float(np.mean(by_host)), max(by_host)
    known = [s for s in snapshot.samples.values() if s.busy_s is not None and s.replicas > 0]
    if not known:
        return None
    by_operator = [(s.busy_s or 0.0) / (s.replicas * snapshot.window_s) for s in known]
    return sum(s.busy_s or 0.0 for s in known) / (
        sum(s.replicas for s in known) * snapshot.window_s
    ), max(by_operator)
