"""What is to be done when: a binary heap of instants, each with the slot it concerns. Compiled code."""

from __future__ import annotations

from typing import Any

from foretide.jit import lean_inner as inner
from foretide.sim.state import HEAP


@inner
def sift_down(s: Any, i: int, size: int, time: float, slot: int) -> None:
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and s.heap_time[child + 1] < s.heap_time[child]:
            child += 1
        if s.heap_time[child] >= time:
            break
        s.heap_time[i] = s.heap_time[child]
        s.heap_slot[i] = s.heap_slot[child]
        i = child
    s.heap_time[i] = time
    s.heap_slot[i] = slot


@inner
def heap_push(s: Any, time: float, slot: int) -> None:
    i = s.count[HEAP]
    s.count[HEAP] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        if s.heap_time[parent] <= time:
            break
        s.heap_time[i] = s.heap_time[parent]
        s.heap_slot[i] = s.heap_slot[parent]
        i = parent
    s.heap_time[i] = time
    s.heap_slot[i] = slot


@inner
def heap_pop(s: Any) -> Any:
    slot = s.heap_slot[0]
    size = s.count[HEAP] - 1
    s.count[HEAP] = size
    if size > 0:
        sift_down(s, 0, size, s.heap_time[size], s.heap_slot[size])
    return slot
