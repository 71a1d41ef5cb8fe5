"""Windows put together: several observations of a run as the one window that they cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from foretide.model import Decision, Forecast, Host, Sample, Snapshot
from foretide.quantities import merged_latency

Number = TypeVar("Number", int, float)


def merged(decisions: Sequence[Decision]) -> Decision:
    """The last decision that planned, with the snapshot of all observations and each forecast as
    its mean over as many steps.

    A decision alone is itself. Observations whose read failed are left out of the counts.
    """
    planned = next((d for d in reversed(decisions) if d.plan is not None), decisions[-1])
    last = replace(planned, at=decisions[-1].at)
    if len(decisions) == 1:
        return decisions[0]
    seen = [d.snapshot for d in decisions if d.snapshot is not None]
    forecasts = {
        n: Forecast(
            (float(np.mean(f.mean[: len(decisions)])),),
            f.upper and (float(np.mean(f.upper[: len(decisions)])),),
        )
        for n, f in last.forecasts.items()
    }
    return replace(last, snapshot=_snapshot(seen) if seen else None, forecasts=forecasts)


def _snapshot(parts: Sequence[Snapshot]) -> Snapshot:
    last = parts[-1]
    samples = {n: _sample([p.samples[n] for p in parts]) for n in last.samples}
    hosts = None if last.hosts is None else tuple(_host(h, parts) for h in last.hosts)
    return Snapshot(
        last.at,
        sum(p.window_s for p in parts),
        samples,
        hosts,
        merged_latency([p.latency for p in parts]),
        lead_s=_last([p.lead_s for p in parts]),
        slots=_last([p.slots for p in parts]),
        moves=tuple(m for p in parts for m in p.moves),
        completion=merged_latency([p.completion for p in parts]),
    )


def _host(last: Host, parts: Sequence[Snapshot]) -> Host:
    """A host that runs at the end: its mean utilization and loads over the time it was there."""
    seen = [(h, p.window_s) for p in parts for h in p.hosts or () if h.name == last.name]
    total_s = sum(seconds for _, seconds in seen)
    loads = {
        n: sum(h.loads.get(n, 0.0) * seconds for h, seconds in seen) / total_s for n in last.loads
    }
    return replace(
        last, utilization=sum(h.utilization * seconds for h, seconds in seen) / total_s, loads=loads
    )


def _sample(parts: Sequence[Sample]) -> Sample:
    """Counts add up; backlog and replicas are the last ones. What only makes sense within an
    observation is dropped.
    """
    last = parts[-1]
    return Sample(
        sum(p.arrived for p in parts),
        sum(p.processed for p in parts),
        last.backlog,
        last.replicas,
        {edge: sum(p.emitted.get(edge, 0.0) for p in parts) for edge in last.emitted},
        busy_s=_sum([p.busy_s for p in parts]),
        offered=_sum([p.offered for p in parts]),
        dropped=_sum([p.dropped for p in parts]),
        latency=merged_latency([p.latency for p in parts]),
        replica_busy_s=_columns([p.replica_busy_s for p in parts]),
        replica_processed=_columns([p.replica_processed for p in parts]),
        max_parallelism=_last([p.max_parallelism for p in parts]),
        state_rows=_last([p.state_rows for p in parts]),
        state_bytes=_last([p.state_bytes for p in parts]),
        watermark_at=_last([p.watermark_at for p in parts]),
    )


def _last(values: Sequence[Number | None]) -> Number | None:
    """The newest value that is known."""
    return next((v for v in reversed(values) if v is not None), None)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _columns(parts: Sequence[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    known = [p for p in parts if p is not None]
    if not known:
        return None
    total = np.zeros(max(len(p) for p in known))
    for p in known:
        total[: len(p)] += p
    return tuple(total.tolist())
