"""How long one decision takes and how good it is: DRS's allocation, the exact optimum of a
schedule, and CBA beside it.

Run: python benchmarks/planning.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from foretide.history import History
from foretide.model import Array, Plan, Sample, Snapshot, WindowPrices
from foretide.plan.cost_balance import cost_balance
from foretide.plan.optimum import needs, optimal_schedule, schedule_cost
from foretide.plan.processors import QueueNetwork, Station, assign_processors
from foretide.systems import system
from foretide.topology import Operator, Topology

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
    video = QueueNetwork((Station(6.0, 0.5), Station(6.0, 0.6), Station(6.0, 0.02)), load=6.0)
    print("DRS, three operators, one decision (published: table II)")
    for total, published in PUBLISHED_MS.items():
        ours = best_s(lambda total=total: assign_processors(video, total), 2000) * 1e3  # type: ignore[misc]
        print(
            f"  K = {total:4d}: {ours:.3f} ms, published {published:.3f} ms, ratio "
            f"{ours / published:.2f}"
        )
    rng = np.random.default_rng(0)
    stations = tuple(
        Station(float(r), float(s))
        for r, s in zip(rng.uniform(1, 100, 1000), rng.uniform(0.01, 1, 1000), strict=True)
    )
    large = QueueNetwork(stations, load=50.0)
    print(
        "DRS, 1,000 operators, K = 100,000: "
        f"{best_s(lambda: assign_processors(large, 100_000), 5):.3f} s (limit 0.5 s)"
    )
    need = rng.integers(1, 501, 10_000)
    print(
        "optimum, 10,000 windows, 500 replicas: "
        f"{best_s(lambda: optimal_schedule(need, WindowPrices(), 1), 5):.3f} s (limit 1 s)"
    )
    best = schedule_cost(optimal_schedule(need, WindowPrices(), 1), WindowPrices(), 1)
    followed = schedule_cost(need, WindowPrices(), 1)
    print(f"  cost of following the need / optimum: {followed / best:.3f}")
    cost_balance_against_optimum(rng)
    print(
        "foretide, one step of 1,000 operators, 400 windows: "
        f"{step_s(1000, 400):.3f} s, once a minute with rules replayed "
        f"{step_s(1000, 400, replay=True):.3f} s (goal 0.3)"
    )
    print(f"foretide, one step of 10,000 operators, 3 windows: {step_s(10_000, 3):.3f} s (goal 1)")


class Steady:
    """Probe and Actuator of a tree of operators under a noisy load."""

    def __init__(self, operators: int) -> None:
        names = [f"o{i}" for i in range(operators)]
        self.topology = Topology(
            tuple(
                Operator(n, (names[(i - 1) // 3],) if i else (), max_replicas=50)
                for i, n in enumerate(names)
            )
        )
        self._rng = np.random.default_rng(1)

    def read(self, now: float) -> Snapshot:
        count = 1000.0 * self._rng.uniform(0.8, 1.2)
        samples = {
            n: Sample(
                count,
                count,
                0.0,
                3,
                dict.fromkeys(self.topology.successors(n), count / 3),
                busy_s=count * 0.01,
                offered=count if n in self.topology.sources else None,
            )
            for n in self.topology.names
        }
        return Snapshot(now, 5.0, samples, lead_s=10.0)

    def apply(self, plan: Plan) -> None:
        """Nothing changes."""


def step_s(operators: int, windows: int, replay: bool = False) -> float:
    """Seconds of forecasts and plan of one step, the best of three; measuring is not counted.
    ``replay`` makes every step one in which rules are replayed.
    """
    tree = Steady(operators)
    loop = system("foretide").autoscaler(tree.topology, tree, tree)
    for i in range(1, windows + 1):
        loop.history.append(tree.read(5.0 * i))
    beat = loop.cadence.fitted(5.0, 10.0)

    def once() -> None:
        history: History = loop.history
        if replay:
            loop.planner.experience._rules = None  # type: ignore[attr-defined]
        loop.planner.plan(tree.topology, history, loop._forecast(beat.horizon))

    return best_s(once, 3)


def random_load(rng: np.random.Generator, windows: int = 200) -> Array:
    """A random walk, a period or bursts, each with noise: events/s at 100/s per replica, up to some
    50 replicas.
    """
    kind = rng.integers(3)
    if kind == 0:
        base = np.abs(rng.normal(0, rng.uniform(10, 150), windows).cumsum())
    elif kind == 1:
        base = rng.uniform(200, 2000) * (
            1 + rng.uniform(0.2, 1) * np.sin(np.arange(windows) / rng.uniform(2, 20))
        )
    else:
        base = np.where(
            rng.random(windows) < rng.uniform(0.02, 0.3),
            rng.uniform(500, 3000, windows),
            rng.uniform(50, 500),
        )
    return np.maximum(0.0, base + rng.normal(0, rng.uniform(5, 200), windows))


def cost_balance_against_optimum(rng: np.random.Generator) -> None:
    print(
        "cost over the optimum's, 1,000 random loads of 200 windows: mean, 95th percentile, worst"
    )
    for told, draw in (
        ("published prices", WindowPrices),
        ("random prices", lambda: random_prices(rng)),
    ):
        ours, followed = [], []
        for _ in range(1000):
            load, prices = random_load(rng), draw()
            need = needs(load, 0.01)
            best = schedule_cost(optimal_schedule(need, prices, 1), prices, 1)
            ours.append(schedule_cost(cost_balance(load, 100.0, prices, 1), prices, 1) / best)
            followed.append(schedule_cost(need, prices, 1) / best)
        for name, values in (("CBA", ours), ("following the need (CBA's first step)", followed)):
            print(
                f"  {told}, {name}: {np.mean(values):.4f}, {np.quantile(values, 0.95):.4f}, "
                f"{max(values):.4f}"
            )


def random_prices(rng: np.random.Generator) -> WindowPrices:
    """Restarts of up to ten replica-windows, re-routings of up to five."""
    return WindowPrices(
        1.0, float(rng.uniform(0, 10)), float(rng.uniform(0, 10)), float(rng.uniform(0, 5))
    )


if __name__ == "__main__":
    main()
