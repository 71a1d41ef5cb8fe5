from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretide.errors import InvalidConfig
from foretide.guards import (
    View,
    bounds,
    budget,
    catch_up,
    cool_down,
    excluded_hours,
    guarded,
    patience,
)
from foretide.history import History
from foretide.model import Host, Plan, Sample, Snapshot
from foretide.systems import system
from foretide.topology import Operator, Topology

PAIR = Topology((Operator("a", min_replicas=2, max_replicas=8), Operator("b", inputs=("a",))))


def view(
    replicas: Sequence[tuple[int, int]] = ((4, 4),),
    backlog: float = 0.0,
    proposals: Sequence[Plan] = (),
    now: float = 0.0,
) -> View:
    """Windows of 10 s with these replicas of a and b, 100 events each."""
    history = History(PAIR)
    for i, (a, b) in enumerate(replicas):
        history.append(
            Snapshot(
                10.0 * (i + 1),
                10.0,
                {"a": Sample(100, 100, backlog, a), "b": Sample(100, 100, 0, b)},
            )
        )
    return View(PAIR, history, now, proposals)


def test_bounds_name_the_limit() -> None:
    plan = bounds()(Plan({"a": 20, "b": 3}, {"a": "load"}), view())
    assert plan.replicas == {"a": 8, "b": 3}
    assert plan.reasons["a"] == "load; 20 is above its maximum of 8"
    assert bounds()(Plan({"a": 1, "b": 3}), view()).replicas["a"] == 2


def test_cool_down_holds_after_a_change_and_then_lets_go() -> None:
    changed = [(2, 4), (4, 4)]
    held = cool_down(60)(Plan({"a": 6, "b": 4}), view(changed))
    assert held.replicas == {"a": 4, "b": 4}
    assert "cool-down is 60 s" in held.reasons["a"]
    later = cool_down(60)(Plan({"a": 6, "b": 4}), view(changed + [(4, 4)] * 6))
    assert later.replicas["a"] == 6
    assert cool_down(60)(Plan({"a": 6, "b": 4}), view()).replicas["a"] == 6


def test_patience_waits_for_repeated_advice_then_takes_the_largest() -> None:
    low = Plan({"a": 2, "b": 4})
    assert patience(3)(low, view()).replicas["a"] == 4
    assert patience(3)(low, view(proposals=[low])).replicas["a"] == 4
    assert patience(3)(low, view(proposals=[Plan({"a": 3, "b": 4}), low])).replicas["a"] == 3
    assert patience(3)(low, view(proposals=[Plan({"a": 5, "b": 4}), low])).replicas["a"] == 4
    assert patience(3)(Plan({"a": 6, "b": 4}), view()).replicas["a"] == 6, "more is taken at once"


def test_patience_holds_executors_too() -> None:
    history = History(PAIR)
    hosts = tuple(Host(f"e{i}", 0.5) for i in range(4))
    history.append(Snapshot(10.0, 10.0, {"a": Sample(1, 1, 0, 4), "b": Sample(1, 1, 0, 4)}, hosts))

    def asking(*executors: int) -> Plan:
        *before, now = [Plan({"a": 4, "b": 4}, executors=e) for e in executors]
        return patience(3)(now, View(PAIR, history, 0.0, before))

    assert asking(2).executors == 4
    assert asking(3, 2, 2).executors == 3
    assert asking(2, 5, 2).executors == 4
    assert asking(6).executors == 6
    assert "asked 3 times" in asking(2).reasons[""]


def test_catch_up_keeps_replicas_while_events_wait() -> None:
    less = Plan({"a": 2, "b": 2})
    held = catch_up(5.0)(less, view(backlog=500))
    assert held.replicas == {"a": 4, "b": 2}
    assert "500 events still wait" in held.reasons["a"]
    assert catch_up(5.0)(less, view(backlog=20)).replicas == {"a": 2, "b": 2}


@given(a=st.integers(1, 60), b=st.integers(1, 60), total=st.integers(3, 40))
def test_budget_is_kept_never_below_a_minimum_and_never_raises(a: int, b: int, total: int) -> None:
    asked = Plan({"a": max(a, 2), "b": b})
    cut = budget(total)(asked, view())
    assert cut.total == min(asked.total, total)
    assert 2 <= cut.replicas["a"] <= asked.replicas["a"]
    assert 1 <= cut.replicas["b"] <= asked.replicas["b"]


FIVE = Topology(
    tuple(Operator(n, min_replicas=m) for n, m in zip("abcde", (1, 1, 2, 3, 8), strict=True))
)


@given(st.lists(st.integers(1, 10_000_000), min_size=5, max_size=5), st.integers(1, 400))
def test_a_budget_takes_from_nobody_while_another_is_above_its_own_share(
    wanted: list[int], total: int
) -> None:
    asked = {o.name: max(o.min_replicas, n) for o, n in zip(FIVE.operators, wanted, strict=True)}
    history = History(FIVE)
    cut = budget(total)(Plan(asked), View(FIVE, history, 0.0)).replicas
    least = {o.name: o.min_replicas for o in FIVE.operators}
    assert sum(cut.values()) == max(min(total, sum(asked.values())), sum(least.values()))
    assert all(least[n] <= cut[n] <= asked[n] for n in asked)
    free = [n for n in asked if cut[n] > least[n]]
    for poor in (n for n in asked if cut[n] < asked[n]):
        for rich in free:  # one replica of rounding apart at most
            assert (cut[rich] - 1) * asked[poor] <= (cut[poor] + 1) * asked[rich]


def test_a_system_cuts_to_a_budget_only_what_can_run() -> None:
    """10,000 asked for an operator that takes 20 must not starve the other one."""
    pair = Topology((Operator("a", (), 1, 20), Operator("b", ("a",), 1, 20)))
    history = History(pair)
    history.append(Snapshot(10.0, 10.0, {n: Sample(1, 1, 0, 20) for n in "ab"}))
    guards = system("srea", guards={"budget": {"total": 64}}).new_guards()
    for asked in (100, 10_000, 3_000_000):
        plan = guarded(Plan({"a": asked, "b": 20}), View(pair, history, 10.0), guards)
        assert plan.replicas == {"a": 20, "b": 20}


def test_excluded_hours_wrap_over_midnight() -> None:
    night = excluded_hours(22, 6)
    more = Plan({"a": 6, "b": 4})
    assert night(more, view(now=23 * 3600)).replicas["a"] == 4
    assert night(more, view(now=3 * 3600)).replicas["a"] == 4
    assert night(more, view(now=12 * 3600)).replicas["a"] == 6
    assert excluded_hours()(more, view(now=0.0)).replicas["a"] == 6
    with pytest.raises(InvalidConfig, match="from 0 to 24"):
        excluded_hours(25, 3)


def test_guards_run_in_order_and_all_reasons_stay() -> None:
    plan = guarded(Plan({"a": 20, "b": 20}, {"a": "load"}), view(), [budget(30), bounds()])
    assert plan.replicas["a"] == 8
    assert plan.reasons["a"].startswith("load; cut to a budget of 30")
    assert "maximum of 8" in plan.reasons["a"]
