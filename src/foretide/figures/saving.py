"""Saving: what a run saved against static peak provisioning, or by how much it ran short.

Owns the rule that a saving is claimed only for what was served, and its sentences. Summary,
dashboard, report and comparison all use it.
"""

from __future__ import annotations

from dataclasses import dataclass

from foretide.figures.account import Account
from foretide.wording import percent, plural

VISIBLE = 5e-4
"""The least share that is called a saving: a smaller one rounds to nothing."""


@dataclass(frozen=True, slots=True)
class Saving:
    """``share`` of the cost saved against static peak, starts and stops included (negative: more
    was paid), and ``replica_time``, the share of replica time alone. Both are None when the peak is
    unknown, and when the run ran short: ``short`` then says by how much.
    """

    share: float | None
    replica_time: float | None = None
    short: str | None = None


def saving(account: Account, slo_share: float | None) -> Saving:
    """A run is short when fewer events than promised were within the target, when replicas covered
    less than that share of the need, or when events were left waiting.
    """
    if not account.windows:
        return Saving(None)
    least, need_share = account.promise.least, account.need_share
    short = []
    if slo_share is not None and slo_share < least:
        target_s = account.promise.target_s
        target = "the target" if target_s is None else f"{target_s:g} s"
        short.append(f"{percent(slo_share)} of events within {target}, not {percent(least)}")
    if need_share is not None and need_share < least:
        unit = "slots" if account.shared else "replicas"
        short.append(f"{unit} covered {percent(need_share)} of the need")
    if account.overdue > (1 - least) * max(1.0, account.due):
        short.append(f"{plural(account.overdue, 'event')} still waiting at the end")
    if short:
        return Saving(None, short="; ".join(short))
    return Saving(account.saved_cost, account.saved_replica_time)


def against_static_peak(account: Account, slo_share: float | None) -> str:
    """How the run compares with static peak provisioning: its cost and what that saved, or by how
    much it ran short.
    """
    outcome, peak = saving(account, slo_share), account.peak
    short = "" if outcome.short is None else f"it ran short: {outcome.short}."
    if peak is None:
        return short or "static peak provisioning is unknown: a service time was never measured."
    unit = "slot" if account.shared else "replica"
    baseline = (
        f"static peak provisioning ({plural(peak, unit)} all the time) would have used "
        f"{peak * account.seconds:,.0f}"
    )
    if outcome.share is None:
        return f"{baseline}; {short}" if short else f"{baseline}."
    return (
        f"{baseline}. Cost with every start and stop: {percent(1 - outcome.share)} of static peak"
        f"{_difference(outcome.share)}."
    )


def _difference(saved: float) -> str:
    """What was saved or paid beyond, where it is more than rounding.

    >>> _difference(0.12), _difference(-0.05), _difference(1e-9)
    (', 12 % saved', ', 5 % more', '')
    """
    if abs(saved) < VISIBLE:
        return ""
    return f", {percent(abs(saved))} {'saved' if saved > 0 else 'more'}"
