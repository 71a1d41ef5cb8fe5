"""Round-robin: what Storm calls shuffle grouping."""

from __future__ import annotations

import numpy as np

from foretide.balance.grouping import Feedback, Ids
from foretide.balance.keys import Keys


class Shuffle:
    """One replica after another, whatever the event. ``start`` says where the round begins.

    >>> Shuffle().assign(np.zeros(5, dtype=np.uint64), replicas=2).tolist()
    [0, 1, 0, 1, 0]
    """

    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        return ((np.arange(len(keys), dtype=np.int64) + start) % replicas).astype(np.int32)

    def learn(self, feedback: Feedback) -> None:
        """Nothing to learn."""
