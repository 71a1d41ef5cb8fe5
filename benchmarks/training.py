"""How long networks take to learn and to forecast: all operators of a loop in one batch beside one
after another.

Runs on whatever device JAX finds, processor or accelerator, unchanged. Compilation is told apart,
since a loop pays it once.

    python benchmarks/training.py                     all of it: some minutes on two cores
    python benchmarks/training.py --operators 16      fewer operators
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import jax
import numpy as np

from foretide.forecast.recurrent import Recurrent
from foretide.model import Array


def day_and_night(windows: int, seed: int) -> Array:
    """A daily wave of 144 windows with noise, at a level of its own: one operator's load."""
    rng = np.random.default_rng(seed)
    wave = 1 + 0.6 * np.sin(2 * np.pi * (np.arange(windows) / 144 + rng.random()))
    return np.asarray(rng.uniform(50, 5000) * np.maximum(wave + rng.normal(0, 0.05, windows), 0.0))


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def batch(operators: int, windows: int, rounds: int) -> None:
    """The same networks, the same rounds, the same seeds; only how they are run differs."""
    nets = [Recurrent(bidirectional=True, rounds=rounds, seed=i) for i in range(operators)]
    series = [day_and_night(windows, i) for i in range(operators)]

    def together() -> object:
        return Recurrent.train_many(nets, series)

    def one_by_one() -> None:
        for net, rates in zip(nets, series, strict=True):
            net.fit(rates)

    first_batch, first_alone = seconds(together), seconds(lambda: nets[0].fit(series[0]))
    in_batch, alone = seconds(together), seconds(one_by_one)
    print(
        f"{operators} operators, bigru, {windows} windows each, {rounds} rounds of 128 minibatches"
    )
    print(
        f"  in one batch       {in_batch:8.2f} s   (first call, with compilation: "
        f"{first_batch:.2f} s)"
    )
    print(
        f"  one after another  {alone:8.2f} s   (first network, with compilation: "
        f"{first_alone:.2f} s)"
    )
    print(f"  ratio              {alone / in_batch:8.2f}     (target on two cores: at least 2)")


def one_long(windows: int) -> None:
    """A full training with early stopping, from a cold start, and then single forecasts."""
    net, rates = Recurrent(bidirectional=True), day_and_night(windows, 1)
    learning_s = seconds(lambda: net.fit(rates))
    print(
        f"bigru on {windows:,} windows: trained in {learning_s:.1f} s, compilation included "
        "(target: at most 120 s)"
    )
    net.forecast(rates, 6)
    each = [1000 * seconds(lambda: net.forecast(rates[-96:], 6)) for _ in range(500)]
    slow = np.quantile(each, 0.99)
    print(
        f"one forecast of 6 windows: median {np.median(each):.2f} ms, 99th percentile {slow:.2f} "
        "ms (target: at most 5 ms)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operators", type=int, default=64)
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--long", type=int, default=17_500)
    given = parser.parse_args()
    print(
        f"jax {jax.__version__} on {jax.devices()[0].device_kind} ({jax.default_backend()}), "
        f"{len(os.sched_getaffinity(0))} cores"
    )
    one_long(given.long)
    batch(given.operators, given.windows, given.rounds)


if __name__ == "__main__":
    main()
