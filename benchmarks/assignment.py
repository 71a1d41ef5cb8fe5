"""How fast each grouping assigns events to replicas on one core, against the same rule in plain
Python, in one run.

python benchmarks/assignment.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from foretide.balance import GROUPINGS
from foretide.balance.arrow_keys import keys_of
from foretide.balance.grouping import Feedback
from foretide.balance.osg import OnlineShuffle

EVENTS, REPLICAS, NAIVE_EVENTS = 1_000_000, 8, 50_000


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def naive_greedy(keys: list[int], costs: dict[int, float]) -> list[int]:
    work = [0.0] * REPLICAS
    ids = []
    for key in keys:
        chosen = min(range(REPLICAS), key=work.__getitem__)
        work[chosen] += costs[key]
        ids.append(chosen)
    return ids


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rng = np.random.default_rng(1)
    values = rng.zipf(1.5, EVENTS).clip(max=1000)
    column = pa.array(values)
    keys = keys_of([column])
    costs = 0.01 + 0.01 * (values % 10)
    naive_keys = keys[:NAIVE_EVENTS].tolist()
    known = dict(zip(keys.tolist(), costs.tolist(), strict=True))
    slow = NAIVE_EVENTS / seconds(lambda: naive_greedy(naive_keys, known), 1)
    print(
        f"{'grouping':12} {'events/s':>14}   {REPLICAS} replicas, one core; greedy in plain "
        f"Python: {slow:,.0f} events/s"
    )
    print(f"{'(hash ints)':12} {EVENTS / seconds(lambda: keys_of([column])):14,.0f}")
    words = pa.array([f"word {v}" for v in values.tolist()])
    print(f"{'(hash text)':12} {EVENTS / seconds(lambda: keys_of([words])):14,.0f}")
    for part in GROUPINGS:
        grouping = GROUPINGS.build(part.name)
        ids = grouping.assign(keys, REPLICAS)
        busy = np.bincount(ids, costs, REPLICAS)
        count = np.bincount(ids, minlength=REPLICAS).astype(float)
        sketch = None
        if isinstance(grouping, OnlineShuffle):
            sketch = grouping.new_sketch()
            sketch.update(keys, costs)
        grouping.learn(Feedback(busy, count, float(busy.max()), sketch))
        rate = EVENTS / seconds(lambda g=grouping: g.assign(keys, REPLICAS))  # type: ignore[misc]
        print(f"{part.name:12} {rate:14,.0f}   {rate / slow:6.0f} x plain Python")


if __name__ == "__main__":
    main()
