"""Subset sum: which operators to take off a host so that as little load as possible moves.

Owns the choice of what moves; where it goes is the packing's business.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

GRID = 10_000
ROUNDING = 1e-9  # of the total: sums that differ by less are equal


def lightest_subset(loads: Mapping[str, float], at_least: float) -> tuple[str, ...]:
    """The operators of smallest total load that is still ``>= at_least``; among equals the fewest,
    since each one moved is paused.

    FUGU, section II: "a subset of their operators is selected using a subset sum algorithm". Solved
    by dynamic programming over the sums that can be reached; of sums closer than 1/GRID of the
    total only one is kept. The answer always reaches ``at_least`` and moves at most ``e =
    len(loads)/GRID`` of the total more than the exact solution for a goal higher by ``e``; while no
    two sums are that close it is exact. Takes everything when nothing less suffices, nothing when
    ``at_least <= 0``.

    >>> lightest_subset({"a": 0.40, "b": 0.25, "c": 0.15, "d": 0.10}, at_least=0.33)
    ('b', 'd')
    """
    names = [n for n, load in loads.items() if load > 0]
    total = math.fsum(loads[n] for n in names)
    goal = at_least - ROUNDING * total
    if at_least <= 0:
        return ()
    if goal >= total * (1 - 2 * ROUNDING):
        return tuple(names)
    unit = total / GRID
    sums = np.full(GRID + 2, np.nan)
    fewest = np.full(GRID + 2, len(names) + 1)
    sums[0], fewest[0] = 0.0, 0
    parents = []
    for name in names:
        before = np.flatnonzero(~np.isnan(sums))
        reached = sums[before] + loads[name]
        count = fewest[before] + 1
        cells = np.minimum(np.floor(reached / unit + ROUNDING), GRID + 1).astype(int)
        parent = np.full(GRID + 2, -1)
        better = (count < fewest[cells]) | ((count == fewest[cells]) & (reached > sums[cells]))
        for i in np.flatnonzero(better)[np.lexsort((reached[better], -count[better]))]:
            sums[cells[i]], fewest[cells[i]], parent[cells[i]] = reached[i], count[i], before[i]
        parents.append(parent)
    enough = np.flatnonzero(np.nan_to_num(sums, nan=-1.0) >= goal)
    if not enough.size:
        return tuple(names)
    cell = int(enough[np.argmin(sums[enough])])
    subset = []
    for name, parent in zip(reversed(names), reversed(parents), strict=True):
        if parent[cell] >= 0:
            subset.append(name)
            cell = int(parent[cell])
    return tuple(reversed(subset))
