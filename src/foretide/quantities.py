"""One definition of every quantity that more than one package computes.

Owns the formulas for load from outside, need, cost of replicas and latency percentiles. Planners,
the simulator, Spark probes, figures, dashboard and report all call these, so that two of them
cannot show different numbers for the same windows. Knows records and arrays only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from foretide import sketch as sketches
from foretide.model import Array, Latency, Prices, Sample, Sketch, WindowPrices

Counts = npt.NDArray[np.int64]
QUANTILES = (0.5, 0.9, 0.99)
RECENT = 10
"""Service times and selectivities are means over this many windows in which an operator worked."""


class Received(Protocol):
    """What one operator received in one window."""

    @property
    def arrived(self) -> float: ...

    @property
    def offered(self) -> float | None: ...


def from_outside(sample: Received) -> float:
    """Events that a source received from outside the topology: ``offered`` where it was measured
    separately, else everything that arrived.

    >>> from foretide.model import Sample
    >>> from_outside(Sample(12, 12, 0, 1, offered=10)), from_outside(Sample(12, 12, 0, 1))
    (10, 12)
    """
    return sample.arrived if sample.offered is None else sample.offered


def busy_replicas(work: Array) -> Array:
    """``max(1, ceil(work))``: the replicas that ``work`` busy seconds per second keep fully busy
    (BGElasor, section 4.2), element by element; NaN stays NaN.

    A relative slack of 1e-9 keeps rounding from asking for one replica more than the exact
    quotient.
    """
    return np.asarray(np.maximum(1.0, np.ceil(work * (1 - 1e-9))))


def needs(rates: Sequence[float] | Array, service_time_s: float) -> Counts:
    """The replicas that each of these rates keeps fully busy.

    >>> needs([0.0, 100.0, 100.1], 0.02)
    array([1, 2, 3])
    """
    return busy_replicas(np.asarray(rates, dtype=float) * service_time_s).astype(np.int64)


def need(rate: float, service_time_s: float) -> int:
    """The replicas that one rate keeps fully busy.

    >>> need(100.0, 0.02), need(100.1, 0.02), need(0.0, 0.02)
    (2, 3, 1)
    """
    return int(busy_replicas(np.array(rate * service_time_s)))


def change_cost(change: Array, prices: Prices | WindowPrices) -> float:
    """``p_up*sum(max(0, d)) + p_down*sum(max(0, -d)) + p_route*count(d != 0)``: what changes d of
    replicas cost (BGElasor, section 4.2).
    """
    moved = prices.up * np.maximum(change, 0).sum() + prices.down * np.maximum(-change, 0).sum()
    return float(moved + prices.route * np.count_nonzero(change))


def cost(replica_seconds: float, change: Array, prices: Prices) -> float:
    """The price of replica time and of the changes that led to it. The changes may be those of one
    operator over its windows or those of all operators in one window: the sums are the same.

    >>> cost(150.0, np.array([0.0, 1.0, 0.0]), Prices(replica_second=2.0))
    5400.0
    """
    return prices.replica_second * replica_seconds + change_cost(change, prices)


def percentiles(values: Any, shares: Sequence[float], weights: Array | None = None) -> list[float]:
    """For each share the smallest value that at least that share of all events does not exceed
    (nearest rank): exact, never interpolated. ``weights`` are the events each value stands for.

    >>> percentiles(np.array([40.0, 10.0, 30.0, 20.0]), (0.5, 0.9))
    [20.0, 40.0]
    >>> percentiles(np.array([1.0, 9.0]), (0.9,), np.array([9.0, 1.0]))
    [1.0]
    """
    if weights is None:
        ranks = [max(0, math.ceil(s * values.size * (1 - 1e-12)) - 1) for s in shares]
        return [float(v) for v in np.partition(values, ranks)[ranks]]
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    at = np.searchsorted(below, np.array(shares) * below[-1] * (1 - 1e-9))
    return [float(v) for v in values[order[np.minimum(at, values.size - 1)]]]


def latency(
    ages_s: Any,
    weights: Array | None = None,
    target_s: float | None = None,
    mean_s: float | None = None,
    mergeable: bool = False,
) -> Latency | None:
    """The latency record of events with these ages; None when there is none.

    ``weights`` are the events each age stands for (None: one). ``mean_s`` is the exact mean, where
    it is known better than from the ages. With ``mergeable`` the record holds the distribution too.

    >>> record = latency(np.array([1.0, 3.0]), target_s=2.0)
    >>> record.mean_ms, record.p50_ms, record.p99_ms, record.within
    (2000.0, 1000.0, 3000.0, 1.0)
    """
    count = float(ages_s.size if weights is None else weights.sum())
    if not count:
        return None
    if mean_s is None:
        total = ages_s.sum(dtype=float) if weights is None else ages_s @ weights
        mean_s = float(total) / count
    p50, p90, p99 = (1e3 * v for v in percentiles(ages_s, QUANTILES, weights))
    within = None
    if target_s is not None:
        early = ages_s <= target_s
        within = float(np.count_nonzero(early) if weights is None else weights[early].sum())
    kept = sketches.sketch(ages_s, weights) if mergeable else None
    return Latency(count, max(0.0, mean_s) * 1e3, p50, p90, p99, within, kept)


def merged_latency(parts: Sequence[Latency | None]) -> Latency | None:
    """Several latency records as one. Count, mean and events within the target are exact.
    Percentiles come from the sketches where every part has one; else each is the largest of the
    parts', which is never below the true one.
    """
    known = [p for p in parts if p is not None and p.count > 0]
    if not known:
        return None
    count = sum(p.count for p in known)
    within = [p.within for p in known if p.within is not None]
    whole, (p50, p90, p99) = _distribution(known)
    return Latency(
        count,
        sum(p.mean_ms * p.count for p in known) / count,
        p50,
        p90,
        p99,
        sum(within) if len(within) == len(known) else None,
        whole,
    )


def _distribution(parts: Sequence[Latency]) -> tuple[Sketch | None, list[float]]:
    """The merged sketch and its percentiles, or None and the largest percentiles of the parts."""
    kept = [p.sketch for p in parts if p.sketch is not None and p.sketch[1]]
    if len(parts) == 1 or len(kept) < len(parts):
        tops = [
            max(column)
            for column in zip(*((p.p50_ms, p.p90_ms, p.p99_ms) for p in parts), strict=True)
        ]
        return (parts[0].sketch if len(parts) == 1 else None), tops
    whole = sketches.merged(kept)
    return whole, sketches.quantiles(whole, QUANTILES)


def sojourn_sum_s(samples: Mapping[str, Sample]) -> float | None:
    """Seconds that an input and all that came of it spent queued and served, summed (DRS, equation
    4, as measured); None where some operator with events does not know its sojourn times.
    """
    load = sum(s.offered or 0.0 for s in samples.values())
    reached = [s for s in samples.values() if s.arrived > 0]
    if load <= 0 or any(s.sojourn_s is None for s in reached):
        return None
    return sum(s.arrived * (s.sojourn_s or 0.0) for s in reached) / load
