"""Whole replicas of several operators: which capacities a pipeline can have, and what they cost.

Rounded up one by one, operators get more than is asked for: 10.1 busy replicas of one and 5.05 of
another become 11 and 6, which is 1.55 replicas for each busy one of the first. A capacity nearby
may cost less for what it lets through: 10 and 5 are 1.50. What rules ask for is less certain than
that, so among the capacities near it the one with the least cost per work is taken.

Work is in busy replicas of the busiest operator. Pure arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foretide.model import Array

NEAR = 0.06
"""How far from what is asked for a capacity may be, relative to it."""
CELLS = 30_000
"""Places of a table at most."""
FINEST = 0.002
"""Busy replicas between two places of a table at least."""
AROUND = 500
"""Places of the table around a single capacity."""
BUSIEST = 64
"""Operators that are looked at, the busiest ones; the others are rounded up."""


@dataclass(frozen=True, slots=True, eq=False)
class Stairs:
    """``place[i]`` is the step to take for ``low + i * cell`` busy replicas. ``capacity`` and
    ``cost`` of the steps rise; a capacity that needs no rounding costs as much as itself.
    """

    low: float
    cell: float
    place: Any
    capacity: Array
    cost: Array

    @classmethod
    def of(
        cls,
        shares: Array,
        top: float,
        low: float = 0.0,
        near: float = NEAR,
        cells: int = CELLS,
    ) -> Stairs:
        """Stairs between ``low`` and ``top`` busy replicas, for operators that have these shares of
        the busiest one's work.

        >>> two = Stairs.of(np.array([1.0, 0.5]), top=20.0)
        >>> two.at(10.1), two.at(11.5)  # 10 and 5, 12 and 6 replicas
        (10.0, 12.0)
        """
        sizes = np.sort(shares[shares > 0])[-BUSIEST:]
        sizes = sizes if sizes.size else np.ones(1)
        cell = max(FINEST, (top - low) / cells)
        asked = low + cell * np.arange(int(np.ceil((top - low) / cell)) + 2)
        replicas = np.maximum(1.0, np.ceil(asked[:, None] * sizes - 1e-6))
        totals, first, place = np.unique(
            replicas.sum(axis=1), return_index=True, return_inverse=True
        )
        capacity, cost = (replicas[first] / sizes).min(axis=1), totals / sizes.sum()
        nearest = np.searchsorted(capacity, asked * (1 - near) - 1e-6)
        farthest = np.searchsorted(capacity, asked * (1 + near) + 1e-6, side="right")
        ends = np.flatnonzero(np.diff(nearest) | np.diff(farthest)) + 1
        for i, j in zip([0, *ends], [*ends, len(asked)], strict=True):
            if farthest[i] > nearest[i]:
                steps = slice(nearest[i], farthest[i])
                place[i:j] = nearest[i] + int(np.argmin(cost[steps] / capacity[steps]))
        return cls(low, cell, np.maximum.accumulate(place), capacity, cost)

    def at(self, wanted: float) -> float:
        """The capacity of the step to take for ``wanted`` busy replicas."""
        i = int((wanted - self.low) / self.cell + 1e-9)
        return float(self.capacity[self.place[min(max(i, 0), len(self.place) - 1)]])


def whole(wanted: float, shares: Array) -> float:
    """Busy replicas to ask for instead of ``wanted``, so that rounding up costs least for what it
    lets through: at most ``NEAR`` more or less.

    >>> half = np.array([1.0, 0.5])
    >>> round(whole(10.1, half), 3), round(whole(1.2, half), 3)
    (10.0, 1.272)
    """
    around = wanted * (1 - 2 * NEAR), wanted * (1 + 2 * NEAR)
    steps = Stairs.of(shares, around[1], around[0], cells=AROUND)
    return min(steps.at(wanted), wanted * (1 + NEAR))
