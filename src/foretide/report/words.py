"""The report's words: what each figure is called and means, and the sentence that sums a comparison
up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from foretide.figures.summary import Summary

ENOUGH = 0.95
LIMIT = "clairvoyant"
"""The system that knows the future: a limit to look at, not a choice."""


@dataclass(frozen=True, slots=True)
class Figure:
    """How one figure is shown: ``better`` says which way is good, None where neither is."""

    key: str
    label: str
    form: Literal["money", "ratio", "share", "count", "ms", "seconds"]
    better: Literal["low", "high"] | None
    means: str


FIGURES = (
    Figure("cost", "cost", "money", None, "price of every replica-window, start, stop and re-routing"),
    Figure("cost_ratio", "× optimum", "ratio", None, "cost over the cheapest schedule that covers every need; below 1: it ran short"),
    Figure("replica_seconds", "replica seconds", "seconds", None, "replicas times time"),
    Figure("adaptations", "changes", "count", "low", "windows in which some operator's replicas changed"),
    Figure("saved_resources", "saved", "share", None, "1 - replicas used / replicas without scaling"),
    Figure("throughput_degradation", "degradation", "share", "low", "mean of |events in - events out| / events in, per window"),
    Figure("processed_share", "processed", "share", "high", "events processed / events received"),
    Figure("latency_mean_ms", "mean", "ms", "low", "mean end-to-end latency"),
    Figure("latency_p50_ms", "p50", "ms", "low", "half of the events were faster"),
    Figure("latency_p90_ms", "p90", "ms", "low", "nine of ten events were faster"),
    Figure("latency_p99_ms", "p99", "ms", "low", "99 of 100 events were faster"),
    Figure("slo_share", "in target", "share", "high", "events within the latency target, of all that left or were dropped"),
    Figure("input_mape", "load error", "share", "low", "mean |forecast - load| / load, one window ahead"),
    Figure("replica_mape", "replica error", "share", "low", "mean |replicas - need| / need"),
    Figure("utilization_mean", "utilization", "share", None, "mean over windows, of hosts or else operators"),
    Figure("utilization_max", "busiest", "share", None, "the busiest host or operator, mean over windows"),
)  # fmt: skip


def verdict(runs: Sequence[Summary]) -> str:
    """One or two sentences: who was cheapest among those who kept the latency target, and how far
    from the limit.
    """
    if len(runs) == 1:
        return _alone(runs[0])
    priced = [r for r in runs if r.figures.cost_ratio is not None and r.system != LIMIT]
    if not priced:
        return "No run was measured."
    if all(r.figures.slo_share is None for r in priced):
        best = min(priced, key=_ratio)
        return (
            f"{best.system} was cheapest at {_ratio(best):.2f} times the optimum. Latency was not "
            "measured."
        )
    kept = [r for r in priced if (r.figures.slo_share or 0.0) >= ENOUGH]
    if not kept:
        best = max(priced, key=lambda r: r.figures.slo_share or 0.0)
        share = best.figures.slo_share or 0.0
        return (
            f"Nobody kept {ENOUGH:.0%} of the events within the latency target. {best.system} came "
            f"closest with {share:.0%}, "
            f"at {_ratio(best):.2f} times the cost of the optimum."
        )
    best, dearest = min(kept, key=_ratio), max(priced, key=_ratio)
    who = "the only one" if len(kept) == 1 else f"the cheapest of the {len(kept)}"
    text = (
        f"{best.system} was {who} that kept {ENOUGH:.0%} of the events within the latency target: "
        f"{_ratio(best):.2f} times the cost of the optimum, {_share(best.figures.slo_share)} of "
        "the events in target."
    )
    if _ratio(dearest) > 1.01 * _ratio(best):
        text += f" {dearest.system} cost most: {_ratio(dearest):.2f} times."
    return text


def _alone(run: Summary) -> str:
    f = run.figures
    said = []
    if f.cost_ratio is not None:
        said.append(
            f"{f.system} cost {f.cost_ratio:.2f} times the clairvoyant optimum with "
            f"{f.adaptations} changes"
        )
    if f.slo_share is not None:
        said.append(f"{_share(f.slo_share)} of the events met the latency target")
    elif f.latency_mean_ms is not None:
        said.append(f"the mean latency was {f.latency_mean_ms:,.0f} ms")
    if f.saved_resources is not None:
        said.append(
            f"it used {f.saved_resources:.0%} fewer replicas than without scaling"
            if f.saved_resources >= 0
            else f"it used {-f.saved_resources:.0%} more replicas than the peak needs"
        )
    return "; ".join(said) + "." if said else "Nothing was measured."


def _ratio(run: Summary) -> float:
    return run.figures.cost_ratio or 0.0


def _share(share: float | None) -> str:
    """Percent, with a digit more near 100 so that 99.96 % does not read as all.

    >>> _share(0.9996), _share(1.0), _share(0.52)
    ('99.96 %', '100 %', '52 %')
    """
    percent = 100 * (share or 0.0)
    return f"{percent:.0f} %" if percent == 100 or percent < 99 else f"{min(percent, 99.99):.2f} %"
