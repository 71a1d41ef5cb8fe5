"""What moves is enough and hardly more than needed."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.plan.hosts.subset_sum import lightest_subset


def optimum(loads: dict[str, float], at_least: float) -> float:
    sums = (sum(c) for n in range(len(loads) + 1) for c in combinations(loads.values(), n))
    return min((s for s in sums if s >= at_least - 1e-12), default=sum(loads.values()))


def test_moves_the_smallest_load_that_reaches_the_target() -> None:
    loads = {"a": 0.5, "b": 0.3, "c": 0.2}
    assert lightest_subset(loads, 0.25) == ("b",)
    assert lightest_subset(loads, 0.4) == (
        "a",
    )  # a alone rather than b and c: the same load, fewer operators
    assert lightest_subset(loads, 0.55) == ("a", "c")
    assert lightest_subset(loads, 0.75) == ("a", "b")


def test_nothing_to_reach_moves_nothing_and_too_much_moves_all() -> None:
    assert lightest_subset({"a": 0.5}, 0.0) == ()
    assert lightest_subset({"a": 0.5, "b": 0.1}, 0.9) == ("a", "b")
    assert lightest_subset({}, 0.3) == ()
    assert lightest_subset({"idle": 0.0, "a": 0.4}, 0.4) == ("a",)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.integers(1, 300))
def test_equals_brute_force_on_whole_loads(sizes: list[int], wanted: int) -> None:
    loads = {f"o{i}": float(s) for i, s in enumerate(sizes)}
    subset = lightest_subset(loads, float(wanted))
    assert sum(loads[n] for n in subset) == optimum(loads, float(wanted))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0.001, 0.9), min_size=1, max_size=9), st.floats(0.01, 0.99))
def test_reaches_the_goal_within_the_stated_excess(sizes: list[float], share: float) -> None:
    loads = {f"o{i}": s for i, s in enumerate(sizes)}
    total = sum(sizes)
    moved = sum(loads[n] for n in lightest_subset(loads, share * total))
    assert moved >= share * total * (1 - 1e-9)
    excess = len(sizes) / 10_000 * total * (1 + 1e-6)
    assert moved <= optimum(loads, share * total + excess) + excess


@pytest.mark.parametrize("count", [35, 200])
def test_many_operators_are_no_problem(count: int) -> None:
    loads = {f"o{i}": 0.01 + 0.001 * (i % 17) for i in range(count)}
    moved = sum(loads[n] for n in lightest_subset(loads, 0.3))
    assert 0.3 - 1e-9 <= moved <= 0.3 + count / 10_000 * sum(loads.values())
