"""What a number of slots does for a micro-batch query: its batches, its latency, how fast it
drains, and which limit holds when no number of slots is enough.

A query starts a batch every ``tau`` seconds (its trigger, or as long as a batch takes) with the
events that came meanwhile. An event waits up to tau for its batch and then for the batch to end, so
a share p of the events is done within ``p * tau + batch``. ``BatchModel`` says how long a batch
takes; this module is the arithmetic on top of it. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from foretide.plan.batch_model import BatchModel

BEST_SHARE = 0.98
"""Slots beyond those that reach this share of the highest throughput add nothing."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one query must do: the rate to plan for, the events that wait, the seconds between two
    batches (0: each starts right after the last), the events that one batch may take in, and the
    promise.
    """

    rate: float
    backlog: float
    trigger_s: float
    batch_limit: float
    target_s: float
    share: float = 0.99

    def times(self, factor: float) -> Demand:
        """The same query at ``factor`` times the rate."""
        return Demand(
            self.rate * factor,
            self.backlog,
            self.trigger_s,
            self.batch_limit,
            self.target_s,
            self.share,
        )


@dataclass(frozen=True, slots=True)
class Outlook:
    """A query in its steady state on some slots. ``latency_s`` is infinite when it does not keep
    up; ``throughput`` is the most it can do, in events/s; ``drain_s`` the seconds until what waits
    beyond the usual is worked off.
    """

    events: float
    batch_s: float
    latency_s: float
    throughput: float
    drain_s: float


def outlook(model: BatchModel, demand: Demand, slots: float) -> Outlook:
    """``demand`` on ``slots``, every batch longer than predicted by the model's own caution."""
    caution = 1.0 + model.caution

    def batch_s(events: float) -> float:
        return model.seconds(min(max(events, 1.0), demand.batch_limit), slots) * caution

    interval_s = demand.trigger_s
    for _ in range(60):
        took_s = batch_s(demand.rate * interval_s)
        if took_s <= interval_s * (1 + 1e-3):
            break
        interval_s = took_s
        if interval_s > 20 * demand.target_s:
            break
    events = demand.rate * interval_s
    took_s = batch_s(events)
    throughput = _throughput(demand, batch_s, max(events, demand.backlog))
    keeps_up = interval_s <= 20 * demand.target_s and events <= demand.batch_limit * (1 + 1e-6)
    latency_s = demand.share * interval_s + took_s if keeps_up else math.inf
    if not keeps_up:  # its batches only grow: what one trigger brings is a measure of them
        events = demand.rate * max(demand.trigger_s, 1.0)
        took_s = batch_s(events)
    usual = 1.5 * demand.rate * (interval_s + took_s) if keeps_up else 0.0
    excess = max(0.0, demand.backlog - usual)
    spare = throughput - demand.rate
    drain_s = 0.0 if excess == 0 else excess / spare if spare > 0 else math.inf
    return Outlook(min(events, demand.batch_limit), took_s, latency_s, throughput, drain_s)


def _throughput(demand: Demand, batch_s: Callable[[float], float], waiting: float) -> float:
    """Events/s with batches as large as may be: what waits, or as many as take the target."""
    events = min(demand.batch_limit, max(waiting, 100.0 * demand.rate, 1000.0))
    return events / max(demand.trigger_s, batch_s(events))


def keeps(view: Outlook, demand: Demand) -> bool:
    """Whether the promise holds and what waits beyond the usual is worked off within the target."""
    return view.latency_s <= demand.target_s and view.drain_s <= demand.target_s


def limit_sentence(model: BatchModel, demand: Demand, slots: float) -> str:
    """Why even ``slots`` (the most there may be) do not keep the promise, and what would; empty
    when more slots than that would.
    """
    useful = model.useful_slots()
    many = 1e6
    unlimited = Demand(
        demand.rate, demand.backlog, demand.trigger_s, math.inf, demand.target_s, demand.share
    )
    if keeps(outlook(model, demand, many), demand):
        return ""
    limited = outlook(model, demand, many).throughput
    if limited < BEST_SHARE * outlook(model, unlimited, many).throughput:
        per_s = demand.rate + demand.backlog / demand.target_s
        wanted = math.ceil(1.25 * per_s * max(demand.trigger_s, 1.0))
        return (
            f"a batch takes in at most {demand.batch_limit:.0f} events: raise maxOffsetsPerTrigger "
            f"to {wanted}: more executors will not help"
        )
    floor_s = demand.share * demand.trigger_s + model.seconds(1.0, many)
    if floor_s > demand.target_s:
        wanted_s = max(0.0, demand.target_s - model.seconds(1.0, many)) / 2
        return (
            f"No number of slots can meet {demand.target_s:g} s: waiting for the trigger and the "
            f"fixed cost of a batch alone take {floor_s:.1f} s; "
            + (
                f"shorten the trigger to {wanted_s:.1f} s or relax the target"
                if wanted_s > 0 and demand.trigger_s > wanted_s
                else "relax the target"
            )
        )
    if useful is not None and useful <= slots:
        per_event_s = model.work_s(1e6) / 1e6
        per_s = demand.rate + demand.backlog / demand.target_s
        wanted = max(useful + 1, math.ceil(1.25 * per_s * per_event_s))
        return (
            f"{useful} partitions cannot use more than {useful} slots: raise partitions to "
            f"{wanted}: more executors will not help"
        )
    return ""
