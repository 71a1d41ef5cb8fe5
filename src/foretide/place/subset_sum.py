"""Subset sum: which operators to take off a host so that as little load as possible moves.

Owns the choice of what moves; where it goes is the packing's business.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np


def lightest_subset(loads: Mapping[str, float], at_least: float, grid: int = 20_000) -> tuple[str, ...]:
    """The operators of smallest total load that is still ``>= at_least``; among equals the fewest, since each one moved is paused.

    FUGU, section II: "a subset of their operators is selected using a subset sum algorithm". Solved by dynamic programming over
    loads rounded down to ``sum(loads)/grid``: the answer always reaches ``at_least``, and moves at most ``e = len(loads)/grid`` of the
    total more than the exact solution for a goal that is higher by ``e``. Takes everything when nothing less suffices, nothing when ``at_least <= 0``.

    >>> lightest_subset({"a": 0.40, "b": 0.25, "c": 0.15, "d": 0.10}, at_least=0.33)
    ('b', 'd')
    """
    names = [n for n, load in loads.items() if load > 0]
    total = math.fsum(loads[n] for n in names)
    if at_least <= 0:
        return ()
    if at_least >= total:
        return tuple(names)
    unit = total / grid
    weights = [math.floor(loads[n] / unit * (1 + 1e-12)) for n in names]
    wanted = math.ceil(at_least / unit * (1 - 1e-12))
    size = sum(weights) + 1
    if wanted >= size:
        return tuple(names)
    unreached = len(names) + 1
    fewest = np.full((len(names) + 1, size), unreached, dtype=np.int32)
    fewest[0, 0] = 0
    for i, weight in enumerate(weights):
        fewest[i + 1] = fewest[i]
        np.minimum(fewest[i + 1, weight:], fewest[i, : size - weight] + 1, out=fewest[i + 1, weight:])
    reached = int(np.argmax(fewest[-1, wanted:] < unreached)) + wanted
    chosen = []
    for i in range(len(names), 0, -1):
        if fewest[i, reached] != fewest[i - 1, reached]:
            chosen.append(names[i - 1])
            reached -= weights[i - 1]
    return tuple(reversed(chosen))
