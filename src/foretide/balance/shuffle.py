"""Round-robin: what Storm calls shuffle grouping."""

from __future__ import annotations

import numpy as np

from foretide.balance.grouping import Grouping, Ids, Traits
from foretide.balance.keys import Keys


class Shuffle(Grouping):
    """One replica after another, whatever the event; the round begins at ``start``.

    >>> Shuffle().assign(np.zeros(5, dtype=np.uint64), replicas=2).tolist()
    [0, 1, 0, 1, 0]
    """

    traits = Traits(same_as="round-robin")

    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        return ((np.arange(len(keys), dtype=np.int64) + start) % replicas).astype(np.int32)
