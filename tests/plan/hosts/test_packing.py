"""Packing never exceeds a capacity, prefers neighbours and stays within the bound of First Fit
Decreasing.
"""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.plan.hosts.packing import SLACK, Bin, Item, first_fit_decreasing

sizes = st.lists(st.floats(0.01, 1.2), max_size=25)


def fewest_bins(sizes: list[int], capacity: int) -> int:
    """Exact optimum by depth-first search; equal levels are tried once."""
    best = len(sizes)
    order = sorted(sizes, reverse=True)

    def place(i: int, levels: list[int]) -> None:
        nonlocal best
        if len(levels) >= best:
            return
        if i == len(order):
            best = len(levels)
            return
        for level in set(levels):
            if level + order[i] <= capacity:
                j = levels.index(level)
                place(i + 1, [*levels[:j], level + order[i], *levels[j + 1 :]])
        place(i + 1, [*levels, order[i]])

    place(0, [])
    return best


@settings(deadline=None, max_examples=80)
@given(sizes, st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8), st.floats(0.0, 1.0))
def test_no_capacity_is_ever_exceeded(sizes: list[float], free: list[float], memory: float) -> None:
    items = [Item(f"o{i}", s, {"memory_bytes": s / 2}) for i, s in enumerate(sizes)]
    bins = [Bin(f"h{i}", f, {"memory_bytes": memory}, frozenset({"x"})) for i, f in enumerate(free)]
    packed = first_fit_decreasing(items, bins)
    put: defaultdict[str, float] = defaultdict(float)
    for item in items:
        if item.name in packed.hosts:
            put[packed.hosts[item.name]] += item.size
    for b in bins:
        assert put[b.name] <= b.free + len(items) * SLACK
        assert put[b.name] / 2 <= memory + len(items) * SLACK
    assert sorted([*packed.hosts, *packed.unplaced]) == sorted(i.name for i in items)


@settings(deadline=None, max_examples=80)
@given(st.lists(st.integers(5, 60), min_size=1, max_size=10))
def test_within_the_bound_of_first_fit_decreasing(sizes: list[int]) -> None:
    bins = [Bin(f"h{i}", 60.0) for i in range(len(sizes))]
    packed = first_fit_decreasing([Item(f"o{i}", float(s)) for i, s in enumerate(sizes)], bins)
    assert not packed.unplaced
    assert len(set(packed.hosts.values())) <= 11 / 9 * fewest_bins(sizes, 60) + 6 / 9


def test_a_host_with_a_neighbour_comes_first() -> None:
    bins = [Bin("h1", 0.5, holds=frozenset({"z"})), Bin("h2", 0.5, holds=frozenset({"parse"}))]
    packed = first_fit_decreasing([Item("count", 0.2, near=frozenset({"parse"}))], bins)
    assert packed.hosts == {"count": "h2"}
    full = [bins[0], Bin("h2", 0.1, holds=frozenset({"parse"}))]
    assert first_fit_decreasing([Item("count", 0.2, near=frozenset({"parse"}))], full).hosts == {
        "count": "h1"
    }


def test_an_operator_above_the_fill_level_gets_an_empty_host_only() -> None:
    big = Item("big", 0.9)
    assert first_fit_decreasing(
        [big], [Bin("h1", 0.6, holds=frozenset({"x"}), alone=1.0)]
    ).unplaced == ("big",)
    packed = first_fit_decreasing([big, Item("small", 0.1)], [Bin("h1", 0.6, alone=1.0)])
    assert packed.hosts == {"big": "h1"}
    assert packed.unplaced == ("small",)


def test_side_resources_veto() -> None:
    bins = [Bin("h1", 1.0, {"memory_bytes": 1e9}), Bin("h2", 1.0, {"memory_bytes": 4e9})]
    assert first_fit_decreasing([Item("a", 0.1, {"memory_bytes": 2e9})], bins).hosts == {"a": "h2"}
