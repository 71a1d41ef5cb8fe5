"""Which replica gets an event: one compiled function, a whole-number code per method.

``choose`` sees the whole state, so that a grouping may look at queues, at what replicas did in this window or at the event's value.
A new grouping is one code and one branch here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretide.sim.jit import inner
from foretide.sim.state import CURSOR, GROUPING, REPLICAS

SHARED, SHUFFLE, KEY = range(3)
GROUPINGS = {"shared": SHARED, "shuffle": SHUFFLE, "key-hash": KEY}


@inner
def hashed(value: int) -> Any:
    """A 64-bit mix of a value (the finalizer of splitmix64, Steele et al. 2014)."""
    x = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner
def choose(s: Any, op: int, value: int) -> Any:
    """The replica, in ``[0, active replicas)``, whose queue an event joins. Not asked for the shared queue.

    shuffle: one after another. key-hash: by the hash of the event's value, so that equal values meet at one replica.
    """
    replicas = s.op_i[op, REPLICAS]
    if s.op_i[op, GROUPING] == KEY:
        return np.int64(hashed(value) % np.uint64(replicas))
    turn = s.op_i[op, CURSOR] + 1
    turn = turn if turn < replicas else 0
    s.op_i[op, CURSOR] = turn
    return turn
