"""What is to be done when: every slot's next instant, and the earliest of all. Compiled code.

A tournament over the slots: leaf ``leaves + slot`` holds the slot's instant (infinity: nothing to
be done), every node above the earlier of its two children, node 1 the earliest of all. A change
plays the games on the way from its leaf to the top: log2(slots) of them. A heap plays fewer, but a
processor guesses their outcomes wrong half of the time, and that costs more than a game without a
guess.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretide.jit import lean_inner as inner

_ONE, _SIGN = np.uint64(1), 63


def new_agenda(slots: int) -> tuple[Any, Any, Any]:
    """Instants of every node when nothing is to be done, the same memory as whole numbers, and the
    nodes' slots.
    """
    leaves = 1 << max(1, (slots - 1).bit_length())
    time = np.full(2 * leaves, np.inf)
    return time, time.view(np.int64), np.zeros(2 * leaves, np.int64)


@inner
def set_due(s: Any, slot: int, time: float) -> None:
    """A slot's instant, which is not negative; what it was before is forgotten.

    Floats that are not negative are in the order of their bits as whole numbers, and the sign of a
    difference selects without a branch.
    """
    node = np.uint64(s.due_time.size // 2 + slot)
    s.due_time[node] = time + 0.0  # never -0.0
    first, first_slot = s.due_bits[node], np.int64(slot)
    s.due_slot[node] = first_slot
    while node > _ONE:
        other = node ^ _ONE
        ahead = s.due_bits[other] - first
        rival_wins = ahead >> _SIGN  # all ones when it does
        first += ahead & rival_wins
        first_slot += (s.due_slot[other] - first_slot) & rival_wins
        node >>= _ONE
        s.due_bits[node] = first
        s.due_slot[node] = first_slot


@inner
def due_of(s: Any, slot: int) -> Any:
    """A slot's instant."""
    return s.due_time[s.due_time.size // 2 + slot]
