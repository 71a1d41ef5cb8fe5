"""Partial key grouping: each key has two replicas, an event goes to the less loaded of them (Nasir
et al., ICDE 2015).
"""

from __future__ import annotations

import numpy as np

from foretide.balance.grouping import Grouping, Ids, Traits
from foretide.balance.keys import Keys, mixed
from foretide.jit import entry


@entry
def _assign(first: Keys, second: Keys, replicas: int, start: int) -> Ids:
    assigned = np.zeros(replicas, dtype=np.int64)
    ids = np.empty(len(first), dtype=np.int32)
    for i in range(len(first)):
        a = np.int32(first[i] % np.uint64(replicas))
        b = np.int32(second[i] % np.uint64(replicas))
        replica = (
            a
            if assigned[a] < assigned[b] or (assigned[a] == assigned[b] and (i + start) % 2 == 0)
            else b
        )
        assigned[replica] += 1
        ids[i] = replica
    return ids


def warm() -> None:
    """Load the compiled code before a daemon forks workers, so that they need not."""
    TwoChoices().assign(np.zeros(1, dtype=np.uint64), 2)


class TwoChoices(Grouping):
    """The state of a key is on at most two replicas. When keys are skewed, the most loaded replica
    has far less to do than under key hash. Loads are counted within the batch.
    """

    traits = Traits(keeps_keys=True, compiled=True)

    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        with np.errstate(over="ignore"):
            return _assign(keys, mixed(keys), replicas, start)
