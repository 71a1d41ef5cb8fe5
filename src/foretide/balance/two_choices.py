"""Partial key grouping: each key has two replicas, an event goes to the less loaded of them (Nasir
et al., ICDE 2015).
"""

from __future__ import annotations

import numpy as np

from foretide.balance.grouping import Feedback, Ids
from foretide.balance.keys import Keys, mixed
from foretide.jit import entry


@entry
def _assign(first: Keys, second: Keys, replicas: int, start: int) -> Ids:
    given = np.zeros(replicas, dtype=np.int64)
    ids = np.empty(len(first), dtype=np.int32)
    for i in range(len(first)):
        a = np.int32(first[i] % np.uint64(replicas))
        b = np.int32(second[i] % np.uint64(replicas))
        chosen = a if given[a] < given[b] or (given[a] == given[b] and (i + start) % 2 == 0) else b
        given[chosen] += 1
        ids[i] = chosen
    return ids


class TwoChoices:
    """State of a key lives on at most two replicas; the most loaded replica has far less than under
    key hash when keys are skewed.
    """

    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        with np.errstate(over="ignore"):
            return _assign(keys, mixed(keys), replicas, start)

    def learn(self, feedback: Feedback) -> None:
        """Nothing to learn: loads are counted within the batch."""
