"""The grouping protocol, and what comes back from a batch: busy time and events per replica, and
what each key cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from foretide.balance.count_min import CostSketch
from foretide.balance.keys import Keys
from foretide.model import Array

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Feedback:
    """One batch: ``busy_s`` and ``processed`` per replica; ``costs`` the replicas' sketches merged,
    ``expected_s`` the work the grouping gave to each replica by its own estimates, where the
    grouping estimates."""

    busy_s: Array
    processed: Array
    span_s: float
    costs: CostSketch | None = None
    expected_s: Array | None = None


class Grouping(Protocol):
    """Assigns the events of one batch to replicas. It lives on the driver, travels with each batch,
    and learns from what came back.

    ``keys`` are 64-bit hashes of what the events' costs or state depend on; the answer is one
    replica id in ``[0, replicas)`` per event. ``start`` tells parallel callers apart, so that their
    rounds do not all begin at replica 0.
    """

    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids: ...

    def learn(self, feedback: Feedback) -> None:
        """Take in what a finished batch measured. Groupings that learn nothing do nothing."""
        ...
