"""Grouping by key: events of one key go to one replica, whatever the replica count."""

from __future__ import annotations

import numpy as np

from foretide.balance.grouping import Grouping, Ids, Traits
from foretide.balance.keys import Keys


class KeyHash(Grouping):
    """``key mod replicas``; keys are well-mixed hashes. When the replica count changes, most keys
    move to another replica; events of one key move together.

    >>> KeyHash().assign(np.array([7, 8, 7], dtype=np.uint64), replicas=4).tolist()
    [3, 0, 3]
    """

    traits = Traits(keeps_keys=True, same_as="hash")

    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        return (keys % np.uint64(replicas)).astype(np.int32)
