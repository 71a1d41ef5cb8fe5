"""One definition of every reported figure, computed from a run record of either world. A figure
that was not measured is None.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from foretide.figures.record import Counts, RunRecord, measured_visits
from foretide.model import Array, Snapshot

__all__ = [
    "Figures",
    "RunRecord",
    "figures",
    "optimum_cost",
    "percentile",
    "run_cost",
    "window_utilization",
]


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of one run; names and order are those of ``foretide compare --json``.

    cost: schedule cost W summed over operators (BGElasor, section 4.2). cost_ratio: cost over the
    clairvoyant optimum, which never runs below the need; a system that does can be below 1.
    replica_seconds: replicas times time. adaptations: windows in which some operator's replicas
    changed. saved_resources, throughput_degradation, processed_share, latency, input_mape,
    replica_mape: PA-SPS, section 4.2. slo_share: events within the latency target, of those that
    left or were dropped. utilization: FUGU, section V: mean over windows of the mean and of the
    largest utilization of hosts, or of operators where no hosts are known.
    """

    system: str
    cost: float | None = None
    cost_ratio: float | None = None
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

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def figures(record: RunRecord) -> Figures:
    """Every figure of a run; a run without a measured window has none."""
    if not record.snapshots:
        return Figures(record.system)
    cost, best = run_cost(record), optimum_cost(record)
    in_, out = _through(record)
    mean_ms, p50, p90, p99 = _latency(record)
    utilization_mean, utilization_max = _utilization(record)
    return Figures(
        record.system,
        cost=cost,
        cost_ratio=cost / best if best else None,
        replica_seconds=_replica_seconds(record),
        adaptations=_adaptations(record),
        saved_resources=_saved(record),
        throughput_degradation=_mean_error(out, in_),
        processed_share=_share(float(out.sum()), float(in_.sum())),
        latency_mean_ms=mean_ms,
        latency_p50_ms=p50,
        latency_p90_ms=p90,
        latency_p99_ms=p99,
        slo_share=_slo_share(record),
        input_mape=_mean_error(record.forecast_next(), record.rates()),
        replica_mape=_replica_mape(record),
        utilization_mean=utilization_mean,
        utilization_max=utilization_max,
    )


def run_cost(record: RunRecord) -> float:
    """W of what ran, summed over operators."""
    return sum(paid(record, n, record.replicas(n)) for n in record.topology.names)


def optimum_cost(record: RunRecord) -> float:
    """W of the clairvoyant optimum, summed over operators."""
    return sum(paid(record, n, record.optimum[n]) for n in record.topology.names)


def paid(record: RunRecord, name: str, schedule: Counts) -> float:
    """The price of a schedule of one operator over the windows of a run, as long as they were."""
    step = np.diff(schedule, prepend=record.before(name))
    prices, running = record.prices, float(schedule @ record.seconds)
    changes = prices.up * np.maximum(step, 0).sum() + prices.down * np.maximum(-step, 0).sum()
    return float(prices.replica_second * running + changes + prices.route * np.count_nonzero(step))


def percentile(values: Array, share: float, weights: Array | None = None) -> float:
    """The smallest value that at least ``share`` of all events do not exceed (nearest rank): exact,
    never interpolated.

    >>> percentile(np.array([40.0, 10.0, 30.0, 20.0]), 0.5), percentile(np.array([1.0, 9.0]), 0.9, np.array([9.0, 1.0]))
    (20.0, 1.0)
    """
    if weights is None:
        rank = max(0, math.ceil(share * values.size * (1 - 1e-12)) - 1)
        return float(np.partition(values, rank)[rank])
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    at = int(np.searchsorted(cumulated, share * cumulated[-1] * (1 - 1e-12)))
    return float(values[order[min(at, values.size - 1)]])


def _mean_error(found: Array, truth: Array) -> float | None:
    """Mean of |found - truth| / truth over the windows where both are known and truth is not 0."""
    known = np.isfinite(found) & np.isfinite(truth) & (truth > 0)
    return (
        float(np.mean(np.abs(found[known] - truth[known]) / truth[known])) if known.any() else None
    )


def _through(record: RunRecord) -> tuple[Array, Array]:
    """Per window: events that should leave the topology for what was offered, and events that its
    last operators processed.

    What one offered event becomes at a sink follows from the run's own selectivities. A topology
    whose every operator feeds another (a loop) is judged by all its operators.
    """
    ends = record.topology.sinks or record.topology.names
    visits = measured_visits(record.topology, record.snapshots)
    out = np.array([sum(s.samples[n].processed for n in ends) for s in record.snapshots])
    return record.offered() * sum(visits[n] for n in ends), out


def _share(part: float, whole: float) -> float | None:
    """``part / whole``; all of it is exactly 1, whatever rounding made of the sums."""
    if whole <= 0:
        return None
    return 1.0 if math.isclose(part, whole, rel_tol=1e-9) else part / whole


def _replica_seconds(record: RunRecord) -> float:
    return float(sum(record.replicas(n) @ record.seconds for n in record.topology.names))


def _adaptations(record: RunRecord) -> int:
    changed = np.zeros(len(record.snapshots), dtype=bool)
    for n in record.topology.names:
        changed |= np.diff(record.replicas(n), prepend=record.before(n)) != 0
    return int(changed.sum())


def _saved(record: RunRecord) -> float:
    names = record.topology.names
    over = record.over_replicas or sum(int(record.needs[n].max()) for n in names)
    return 1.0 - float(np.mean(sum(record.replicas(n) for n in names))) / over


def _replica_mape(record: RunRecord) -> float | None:
    errors = [
        _mean_error(record.replicas(n).astype(float), record.needs[n].astype(float))
        for n in record.topology.names
    ]
    known = [e for e in errors if e is not None]
    return float(np.mean(known)) if known else None


def _latency(record: RunRecord) -> tuple[float | None, float | None, float | None, float | None]:
    """Mean, p50, p90, p99. From window summaries only the mean is exact, so only the mean is given."""
    values, weights = record.latencies_ms, record.latency_weights
    if values is not None and values.size:
        mean = float(np.average(values, weights=weights))
        return (
            mean,
            percentile(values, 0.5, weights),
            percentile(values, 0.9, weights),
            percentile(values, 0.99, weights),
        )
    windows = [s.latency for s in record.snapshots if s.latency is not None and s.latency.count > 0]
    count = sum(w.count for w in windows)
    return (sum(w.mean_ms * w.count for w in windows) / count if count else None), None, None, None


def _slo_share(record: RunRecord) -> float | None:
    dropped = sum(
        s.dropped or 0.0 for snapshot in record.snapshots for s in snapshot.samples.values()
    )
    if record.latencies_ms is not None and record.target_latency_s is not None:
        weights = (
            np.ones(record.latencies_ms.size)
            if record.latency_weights is None
            else record.latency_weights
        )
        target_ms = (
            record.target_latency_s * 1000 * (1 + 1e-6)
        )  # latencies are kept as 32-bit numbers
        within = float(weights[record.latencies_ms <= target_ms].sum())
        left = float(weights.sum()) + dropped
    else:
        windows = [
            s.latency
            for s in record.snapshots
            if s.latency is not None and s.latency.within is not None
        ]
        within = sum(w.within or 0.0 for w in windows)
        left = sum(w.count for w in windows) + dropped if windows else 0.0
    return within / left if left else None


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
