"""The report's words: name and meaning of each figure, and the sentence that sums up the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from foretide.figures.saving import VISIBLE
from foretide.figures.summary import Summary
from foretide.wording import percent, plural

LIMITS = ("clairvoyant", "clairvoyant-target")
"""Systems that know the future: limits to compare with, not choices."""


@dataclass(frozen=True, slots=True)
class Figure:
    """How one figure is shown: ``better`` is the good direction, None where neither is."""

    key: str
    label: str
    form: Literal["money", "ratio", "share", "count", "ms", "seconds"]
    better: Literal["low", "high"] | None
    means: str


FIGURES = (
    Figure("cost", "cost", "money", None, "price of replica time, starts, stops and re-routings"),
    Figure(
        "cost_ratio",
        "× optimum",
        "ratio",
        None,
        "cost over the cheapest schedule that covers every need; below 1: it ran short",
    ),
    Figure(
        "target_cost_ratio",
        "× target optimum",
        "ratio",
        None,
        "cost over the cheapest schedule that keeps the promised share within the target",
    ),
    Figure("replica_seconds", "replica seconds", "seconds", None, "replicas times time"),
    Figure("adaptations", "changes", "count", "low", "windows in which some replicas changed"),
    Figure(
        "saved_cost",
        "saved",
        "share",
        None,
        "cost, starts and stops included, saved against the peak need all the time; none where the "
        "run ran short",
    ),
    Figure(
        "saved_resources",
        "less replica time",
        "share",
        None,
        "replica time below the peak need all the time, whatever starts and stops cost",
    ),
    Figure(
        "throughput_degradation",
        "degradation",
        "share",
        "low",
        "mean per window of |events in - events out| / the larger of the two",
    ),
    Figure("processed_share", "processed", "share", "high", "events processed / events received"),
    Figure("latency_mean_ms", "mean", "ms", "low", "mean end-to-end latency"),
    Figure("latency_p50_ms", "p50", "ms", "low", "half of the events were faster"),
    Figure("latency_p90_ms", "p90", "ms", "low", "nine of ten events were faster"),
    Figure("latency_p99_ms", "p99", "ms", "low", "99 of 100 events were faster"),
    Figure(
        "slo_share",
        "in target",
        "share",
        "high",
        "events within the latency target, of all that left, were dropped or are overdue",
    ),
    Figure(
        "input_mape",
        "load error",
        "share",
        "low",
        "mean |forecast - load| / load, one window ahead",
    ),
    Figure("replica_mape", "replica error", "share", "low", "mean |replicas - need| / need"),
    Figure("utilization_mean", "utilization", "share", None, "mean, of hosts or else operators"),
    Figure("utilization_max", "busiest", "share", None, "the busiest host or operator, mean"),
    Figure(
        "need_share",
        "need covered",
        "share",
        "high",
        "replica time that ran / that the load needed",
    ),
)


def verdict(runs: Sequence[Summary]) -> str:
    """One or two sentences: the cheapest system that kept the promise, and how far it was from the
    limit.
    """
    if len(runs) == 1:
        return _alone(runs[0])
    priced = [r for r in runs if r.figures.cost_ratio is not None and r.system not in LIMITS]
    if not priced:
        return "No run was measured."
    if all(r.figures.slo_share is None for r in priced):
        served = [r for r in priced if r.short is None] or priced
        best = min(served, key=_ratio)
        return (
            f"{best.system} was cheapest at {_ratio(best):.2f} times the optimum. Latency was not "
            f"measured.{_short(best)}"
        )
    least = runs[0].share
    kept = [r for r in priced if r.short is None]
    in_time = [r for r in priced if (r.figures.slo_share or 0.0) >= least]
    if not kept and in_time:
        best = min(in_time, key=_ratio)
        return (
            f"{best.system} kept {percent(best.figures.slo_share or 0.0)} of events within the "
            f"latency target at {_ratio(best):.2f} times the cost of the optimum. No saving is "
            f"claimed: {best.short}."
        )
    if not kept:
        best = max(priced, key=lambda r: r.figures.slo_share or 0.0)
        return (
            f"No system kept {percent(least)} of events within the latency target. "
            f"{best.system} came closest with {percent(best.figures.slo_share or 0.0)} in "
            f"target, at {_ratio(best):.2f} times the cost of the optimum."
        )
    best, dearest = min(kept, key=_ratio), max(priced, key=_ratio)
    below = [r for r in in_time if r.short is not None]
    who = "the only one" if len(kept) == 1 else f"the cheapest of {len(kept)}"
    text = (
        f"{best.system} was {who} that kept {percent(least)} of events within the latency target"
        f"{' and ran short of nothing' if below else ''}: "
        f"{_ratio(best):.2f} times the cost of the optimum, "
        f"{percent(best.figures.slo_share or 0.0)} of events in target."
    )
    if below and _ratio(cheaper := min(below, key=_ratio)) < _ratio(best):
        text += (
            f" {cheaper.system} kept {percent(cheaper.figures.slo_share or 0.0)} at "
            f"{_ratio(cheaper):.2f} times; no saving is claimed: {cheaper.short}."
        )
    if _ratio(dearest) > 1.01 * _ratio(best):
        text += f" {dearest.system} cost most: {_ratio(dearest):.2f} times."
    return text


def _alone(run: Summary) -> str:
    f = run.figures
    clauses = []
    if f.cost_ratio is not None:
        clauses.append(
            f"{f.system} cost {f.cost_ratio:.2f} times the clairvoyant optimum with "
            f"{plural(f.adaptations or 0, 'change')}"
        )
    if f.slo_share is not None:
        clauses.append(f"{percent(f.slo_share)} of events met the latency target")
    elif f.latency_mean_ms is not None:
        clauses.append(f"the mean latency was {f.latency_mean_ms:,.0f} ms")
    if f.saved_cost is not None:
        difference = (
            "as much as"
            if abs(f.saved_cost) < VISIBLE
            else f"{percent(abs(f.saved_cost))} {'less' if f.saved_cost > 0 else 'more'} than"
        )
        clauses.append(f"with every start and stop it cost {difference} static peak provisioning")
    return "; ".join(clauses) + "." + _short(run) if clauses else "Nothing was measured."


def _short(run: Summary) -> str:
    return "" if run.short is None else f" It ran short: {run.short}."


def _ratio(run: Summary) -> float:
    return run.figures.cost_ratio or 0.0
