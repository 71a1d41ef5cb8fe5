"""Guards: small pure functions between the planner and the actuator. Each makes a plan more
careful, and adds its reason.

A guard is a function ``(plan, view) -> plan``; the factories below bind its constants. Guards run
in the order given. A system puts ``bounds`` first and last: the guards between see what can run,
and what they return can run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from foretide.errors import InvalidConfig
from foretide.history import History
from foretide.model import Host, Plan, Snapshot
from foretide.registry import Part, Registry
from foretide.speedup import MEMORY, ceiling, verdicts
from foretide.topology import Topology


@dataclass(frozen=True, slots=True)
class View:
    """What a guard may look at: ``proposals`` are the planner's earlier plans, oldest first."""

    topology: Topology
    history: History
    now: float
    proposals: Sequence[Plan] = ()

    def replicas(self) -> dict[str, int]:
        """What runs now, never less than one."""
        return {n: max(1, self.history.replicas(n)) for n in self.topology.names}


Guard = Callable[[Plan, View], Plan]


def bounds() -> Guard:
    """Every operator stays within its min_replicas and max_replicas."""

    def guard(plan: Plan, view: View) -> Plan:
        for name, wanted in plan.replicas.items():
            o = view.topology[name]
            if wanted > o.max_replicas:
                plan = plan.but(
                    {name: o.max_replicas}, f"{wanted} is above its maximum of {o.max_replicas}"
                )
            elif wanted < o.min_replicas:
                plan = plan.but(
                    {name: o.min_replicas}, f"{wanted} is below its minimum of {o.min_replicas}"
                )
        return plan

    return guard


def cool_down(seconds: float = 60.0) -> Guard:
    """No change at all for ``seconds`` after replicas last changed."""
    if seconds < 0:
        raise InvalidConfig(f"cool-down of {seconds:g} s: give 0 seconds or more")

    def guard(plan: Plan, view: View) -> Plan:
        since = view.history.since_change_s()
        if since is None or since >= seconds:
            return plan
        return plan.but(
            view.replicas(),
            f"held: {since:.0f} s since the last change, cool-down is {seconds:.0f} s",
        )

    return guard


def patience(windows: int = 3) -> Guard:
    """Fewer replicas only when the last ``windows`` proposals all asked for fewer; then the largest
    of them is taken.
    """
    if windows < 1:
        raise InvalidConfig(f"patience of {windows} windows: give 1 or more")

    def guard(plan: Plan, view: View) -> Plan:
        current = view.replicas()
        recent = [*view.proposals, plan][-windows:]
        for name, wanted in plan.replicas.items():
            if wanted >= current[name]:
                continue
            asked = [p.replicas.get(name, current[name]) for p in recent]
            if len(asked) < windows or max(asked) >= current[name]:
                below = sum(1 for a in asked if a < current[name])
                plan = plan.but(
                    {name: current[name]},
                    f"held: fewer were asked for in {below} of {windows} plans in a row",
                )
            else:
                plan = plan.but(
                    {name: max(asked)}, f"takes the largest of the last {windows} proposals"
                )
        return _fewer_executors(plan, recent, view.history.latest.hosts, windows)

    return guard


def _fewer_executors(
    plan: Plan, recent: Sequence[Plan], hosts: Sequence[Host] | None, windows: int
) -> Plan:
    """Patience for executors, where the planner decides them and it is known how many run."""
    if (
        plan.executors is None
        or plan.placement is not None
        or hosts is None
        or plan.executors >= len(hosts)
    ):
        return plan
    asked = [p.executors for p in recent if p.executors is not None]
    kept = len(hosts) if len(asked) < windows else min(max(asked), len(hosts))
    if kept == plan.executors:
        return plan
    why = f"held at {kept} executors until fewer were asked {windows} times in a row"
    return replace(
        plan,
        executors=kept,
        reasons={**plan.reasons, "": f"{plan.reasons.get('', '')}; {why}".lstrip("; ")},
    )


def catch_up(backlog_s: float = 5.0) -> Guard:
    """No operator loses replicas while its backlog is more than ``backlog_s`` seconds of its
    arrivals.
    """
    if backlog_s < 0:
        raise InvalidConfig(f"catch-up with {backlog_s:g} s of backlog: give 0 seconds or more")

    def guard(plan: Plan, view: View) -> Plan:
        latest = view.history.latest
        for name, current in view.replicas().items():
            sample = latest.samples[name]
            rate = sample.arrived / latest.window_s
            if plan.replicas.get(name, current) < current and sample.backlog > backlog_s * max(
                rate, 1.0
            ):
                plan = plan.but(
                    {name: current},
                    f"held: {sample.backlog:.0f} events still wait, catching up first",
                )
        return plan

    return guard


def budget(total: int = 64) -> Guard:
    """At most ``total`` replicas over all operators: every operator is cut in proportion to what
    was asked for it, never below its minimum.
    """
    if total < 1:
        raise InvalidConfig(f"a budget of {total} replicas: give 1 or more")

    def guard(plan: Plan, view: View) -> Plan:
        least = {n: view.topology[n].min_replicas for n in plan.replicas}
        return plan.but(
            shares(plan.replicas, least, total),
            f"cut to a budget of {total} replicas in all ({plan.total} were asked)",
        )

    return guard


def shares(asked: Mapping[str, int], least: Mapping[str, int], total: int) -> dict[str, int]:
    """``asked`` cut to a sum of ``total`` in proportion, none below ``least``; largest remainders
    get what rounding leaves.

    >>> shares({"a": 60, "b": 10}, {"a": 1, "b": 1}, 35)
    {'a': 30, 'b': 5}
    """
    floor = {n: min(least[n], asked[n]) for n in asked}
    if sum(asked.values()) <= total or sum(floor.values()) >= total:
        return dict(asked) if sum(asked.values()) <= total else floor
    cut = dict(asked)
    while True:  # each round fixes one more operator at its minimum, or ends
        left = total - sum(floor[n] for n in asked if n not in cut)
        wanted = sum(cut.values())
        low = [n for n in cut if asked[n] * left < floor[n] * wanted]
        if not low:
            break
        for n in low:
            del cut[n]
    given = {n: asked[n] * left // wanted for n in cut}
    ahead = sorted(cut, key=lambda n: (-(asked[n] * left % wanted), n))
    for n in ahead[: left - sum(given.values())]:
        given[n] += 1
    return {n: given.get(n, floor[n]) for n in asked}


def effect(memory: int = MEMORY) -> Guard:
    """No more replicas than measured speed-up says are worth having: a change that made it worse is
    taken back, and replicas that added nothing are not asked for again within ``memory`` windows.
    Where all operators run on all slots, the same holds for executors.
    """
    if memory < 3:
        raise InvalidConfig(f"effect with a memory of {memory} windows: give 3 or more")

    def guard(plan: Plan, view: View) -> Plan:
        if plan.executors is not None and _all_on_all_slots(view.history.latest):
            return _executors_worth_having(plan, plan.executors, view, memory)
        for name in plan.replicas:
            for verdict in verdicts(view.history, name, memory):
                if plan.replicas[name] > verdict.best.replicas:
                    plan = plan.but({name: verdict.best.replicas}, str(verdict))
        return plan

    return guard


def _all_on_all_slots(latest: Snapshot) -> bool:
    """Whether every operator runs on all slots, as queries do that are only watched."""
    return latest.slots is not None and all(
        s.replicas == latest.slots for s in latest.samples.values()
    )


def _executors_worth_having(plan: Plan, wanted: int, view: View, memory: int) -> Plan:
    """As many as the operator needs that gains from the most slots; an operator about which nothing
    is known may need all that are planned.
    """
    cores = max((h.capacity for h in view.history.latest.hosts or ()), default=0.0)
    limits = [ceiling(view.history, n, memory) for n in view.topology.names]
    known = [limit for limit in limits if limit is not None]
    if not cores or len(known) < len(limits):
        return plan
    most = max(known, key=lambda limit: limit.best.replicas)
    worth = math.ceil(most.best.replicas / cores)
    if wanted <= worth:
        return plan
    why = f"held at {worth} executors: {most}".replace("replicas", "slots")
    reason = f"{plan.reasons.get('', '')}; {why}".lstrip("; ")
    return replace(plan, executors=worth, reasons={**plan.reasons, "": reason})


def excluded_hours(start: int = 0, end: int = 0) -> Guard:
    """No change between ``start`` and ``end`` o'clock UTC (over midnight when start > end); equal
    hours exclude nothing.
    """
    if not (0 <= start <= 24 and 0 <= end <= 24):
        raise InvalidConfig(f"excluded hours {start}-{end}: give hours from 0 to 24, UTC")

    def guard(plan: Plan, view: View) -> Plan:
        hour = datetime.fromtimestamp(view.now, tz=UTC).hour
        inside = start <= hour < end if start <= end else (hour >= start or hour < end)
        return (
            plan.but(view.replicas(), f"held: no changes between {start}:00 and {end}:00 UTC")
            if inside
            else plan
        )

    return guard


GUARDS: Registry[Guard] = Registry(
    "guard",
    (
        Part(
            "excluded-hours", "foretide.guards:excluded_hours", "no change during these hours (UTC)"
        ),
        Part("cool-down", "foretide.guards:cool_down", "no change for a while after a change"),
        Part("catch-up", "foretide.guards:catch_up", "no fewer replicas while a backlog drains"),
        Part("patience", "foretide.guards:patience", "fewer replicas only after repeated advice"),
        Part("budget", "foretide.guards:budget", "at most so many replicas over all operators"),
        Part(
            "effect", "foretide.guards:effect", "no replicas that measured speed-up calls useless"
        ),
        Part("bounds", "foretide.guards:bounds", "minimum and maximum of each operator"),
    ),
)


def guarded(plan: Plan, view: View, guards: Sequence[Guard]) -> Plan:
    """The plan after every guard in turn."""
    for guard in guards:
        plan = guard(plan, view)
    return plan
