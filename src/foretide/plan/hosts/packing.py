"""Bin packing: on which host each operator that moves finds room.

Owns the incremental First Fit Decreasing of FUGU (section II): hosts are bins, operators are items,
what is not given as an item stays where it is. CPU decides the order; side resources (memory,
network) only veto.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

SLACK = 1e-9  # sums of loads carry rounding: this much of a capacity may be exceeded


@dataclass(frozen=True, slots=True)
class Item:
    """An operator (or its part on one host) that looks for a host: its CPU load, its side uses, its
    neighbours in the graph.
    """

    name: str
    size: float
    uses: Mapping[str, float] = field(default_factory=dict)
    near: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Bin:
    """Room on a host: ``free`` CPU up to the level it may be filled to, ``limits`` what is left of
    each side resource, ``holds`` the operators it carries. ``alone`` is what an empty host may take
    as a single item when that is more than ``free``.
    """

    name: str
    free: float
    limits: Mapping[str, float] = field(default_factory=dict)
    holds: frozenset[str] = frozenset()
    alone: float = 0.0

    def takes(self, item: Item) -> bool:
        room = self.free if self.holds else max(self.free, self.alone)
        sides = all(item.uses.get(r, 0.0) <= left + SLACK for r, left in self.limits.items())
        return item.size <= room + SLACK and sides

    def with_item(self, item: Item) -> Bin:
        left = {r: v - item.uses.get(r, 0.0) for r, v in self.limits.items()}
        return Bin(self.name, self.free - item.size, left, self.holds | {item.name}, self.alone)


@dataclass(frozen=True, slots=True)
class Packing:
    """Where each item went, and which found no room."""

    hosts: Mapping[str, str]
    unplaced: tuple[str, ...]
    bins: tuple[Bin, ...]


def first_fit_decreasing(items: Iterable[Item], bins: Sequence[Bin]) -> Packing:
    """Largest item first, each into the first bin with room; a bin that holds a neighbour comes
    before one that does not.

    Bins are tried in the order given, so spare hosts go last. Equal sizes keep their order. Without
    neighbours and with equal empty bins it opens at most ``11/9 * OPT + 6/9`` of them (Dosa, 2007).

    >>> room = [Bin("h1", free=0.3, holds=frozenset({"x"})), Bin("h2", free=0.6)]
    >>> packed = first_fit_decreasing([Item("a", 0.2), Item("b", 0.5), Item("c", 0.2)], room)
    >>> packed.hosts, packed.unplaced
    ({'b': 'h2', 'a': 'h1'}, ('c',))
    """
    room = list(bins)
    hosts: dict[str, str] = {}
    unplaced: list[str] = []
    for item in sorted(items, key=lambda i: -i.size):
        fitting = [j for j, b in enumerate(room) if b.takes(item)]
        if not fitting:
            unplaced.append(item.name)
            continue
        j = next((j for j in fitting if item.near & room[j].holds), fitting[0])
        room[j] = room[j].with_item(item)
        hosts[item.name] = room[j].name
    return Packing(hosts, tuple(unplaced), tuple(room))
