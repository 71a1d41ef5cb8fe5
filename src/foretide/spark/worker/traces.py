"""Which events are followed until all that came of them is done, and what a task counts of them.

An event's arrival stamp travels with it and with all that comes of it, so the stamp is the id that
a followed event carries: every n-th stamp, chosen by a hash of its bits, the same in every task. A
task counts how many events of a followed stamp it took and how many it gave, by output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from foretide.balance.keys import mixed
from foretide.model import Array

DROPPED = "\0dead"
"""The output of a dead letter."""


@dataclass
class Trace:
    """One followed stamp in one task: events taken, and given per named output (None: the only
    one).
    """

    taken: int = 0
    given: dict[str | None, int] = field(default_factory=dict)


def followed(stamps: Array, every: int) -> npt.NDArray[np.intp]:
    """Indices of the stamps that are followed: one in ``every``, all with 1.

    >>> followed(np.array([0.25, 0.5]), 1).tolist()
    [0, 1]
    """
    bits = np.ascontiguousarray(stamps, dtype=np.float64).view(np.uint64)
    return np.flatnonzero(mixed(bits) % np.uint64(max(1, every)) == 0)


def count(
    traces: dict[float, Trace],
    taken: Array,
    given: Array,
    outputs: Sequence[str | None],
    every: int,
) -> None:
    """Count the followed stamps among those that a task took and those of what it gave;
    ``outputs`` is aligned with ``given``, and ``DROPPED`` there goes to no operator.
    """
    for i in followed(taken, every):
        traces.setdefault(float(taken[i]), Trace()).taken += 1
    for i in followed(given, every):
        if (output := outputs[i]) != DROPPED:
            trace = traces.setdefault(float(given[i]), Trace())
            trace.given[output] = trace.given.get(output, 0) + 1
