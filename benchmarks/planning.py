"""How long one decision takes: DRS's allocation against the published times, and the exact optimum of a schedule.

Run: python benchmarks/planning.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from foretide.model import Prices
from foretide.plan.optimum import optimal_schedule, schedule_cost
from foretide.plan.processors import Network, Station, assign_processors

PUBLISHED_MS = {12: 0.083, 24: 0.158, 48: 0.323, 96: 0.665, 192: 1.250}  # DRS, table II


def best_s(call: Callable[[], object], repeats: int) -> float:
    """The fastest of some runs: what the machine can do when nothing else disturbs it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    video = Network((Station(6.0, 0.5), Station(6.0, 0.6), Station(6.0, 0.02)), load=6.0)
    print("DRS, three operators, one decision (published: table II)")
    for total, published in PUBLISHED_MS.items():
        ours = best_s(lambda total=total: assign_processors(video, total), 2000) * 1e3  # type: ignore[misc]
        print(f"  K = {total:4d}: {ours:.3f} ms, published {published:.3f} ms, ratio {ours / published:.2f}")
    rng = np.random.default_rng(0)
    stations = tuple(
        Station(float(r), float(s)) for r, s in zip(rng.uniform(1, 100, 1000), rng.uniform(0.01, 1, 1000), strict=True)
    )
    large = Network(stations, load=50.0)
    print(f"DRS, 1,000 operators, K = 100,000: {best_s(lambda: assign_processors(large, 100_000), 5):.3f} s (limit 0.5 s)")
    need = rng.integers(1, 501, 10_000)
    print(f"optimum, 10,000 windows, 500 replicas: {best_s(lambda: optimal_schedule(need, Prices(), 1), 5):.3f} s (limit 1 s)")
    best = schedule_cost(optimal_schedule(need, Prices(), 1), Prices(), 1)
    print(f"  cost of following the need / optimum: {schedule_cost(need, Prices(), 1) / best:.3f}")


if __name__ == "__main__":
    main()
