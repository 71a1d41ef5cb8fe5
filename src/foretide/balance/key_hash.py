"""By key: equal keys always meet at one replica, at any replica count."""

from __future__ import annotations

import numpy as np

from foretide.balance.grouping import Feedback, Ids
from foretide.balance.keys import Keys


class KeyHash:
    """``key mod replicas``; keys are well-mixed hashes. When the replica count changes, most keys
    move to another replica, all events of a key together.

    >>> KeyHash().assign(np.array([7, 8, 7], dtype=np.uint64), replicas=4).tolist()
    [3, 0, 3]
    """

    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        return (keys % np.uint64(replicas)).astype(np.int32)

    def learn(self, feedback: Feedback) -> None:
        """Nothing to learn."""
