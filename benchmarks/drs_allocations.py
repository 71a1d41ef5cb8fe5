"""DRS live: the allocation that it recommends for a number of replicas, and a worse one, with the
measured completion of inputs (an input is done when all that came of it is done).

python benchmarks/drs_allocations.py vld:4:8 fpd:20:6 [--seconds 40]      APP:EVENTS/S:REPLICAS
python benchmarks/drs_allocations.py vld:0.5:5 --real     the example with real work, on your cores

Every app runs with replicas spread evenly first, which the model is made from. The worse allocation
is the one with the longest modelled time among those of as many replicas that keep up. Needs Java.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from pathlib import Path

import numpy as np
from drs_batches import mean, read_windows
from pyspark.sql import SparkSession

from foretide.apps import app as app_named
from foretide.cli.demo_app import example
from foretide.history import History
from foretide.load import Load
from foretide.model import Snapshot
from foretide.plan.drs import Drs, Network
from foretide.spark import Running, session
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.probe import PipelineProbe
from foretide.spark.declare.described import described
from foretide.spark.declare.pipeline import Pipeline

WARM_UP_S, SETTLE_S, WINDOW_S, LEARN_S = 45.0, 10.0, 5.0, 30.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="+", metavar="APP:EVENTS/S:REPLICAS")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each allocation")
    parser.add_argument("--trigger", type=float, default=2.0)
    parser.add_argument("--real", action="store_true", help="the examples with real work")
    given = parser.parse_args()
    spark = session("drs-allocations", master="local[32]", short_run=True)
    for case in given.cases:
        name, rate, total = case.split(":")
        seconds = WARM_UP_S + LEARN_S + 3 * given.seconds + 120
        load = Load("level", np.full(int(seconds), float(rate)))
        with tempfile.TemporaryDirectory() as folder:
            pipeline = (
                example(name, load, Path(folder))
                if given.real
                else described(app_named(name), load, trigger_s=given.trigger)
            )
            print(f"{name}, {rate} inputs/s, {total} replicas", flush=True)
            measured(pipeline, spark, Path(folder), int(total), given.seconds)
    spark.stop()


def measured(
    pipeline: Pipeline, spark: SparkSession, folder: Path, total: int, seconds: float
) -> None:
    """Print the completion under the recommended allocation and under the worse one."""
    with Running(pipeline, spark, folder / "run") as running:
        names = running.topology.names
        probe = PipelineProbe(running, ExecutorPool(spark))
        even = tuple(total // len(names) + (i < total % len(names)) for i in range(len(names)))
        running.set_replicas(dict(zip(names, even, strict=True)))
        time.sleep(WARM_UP_S)
        running.accounts.take()
        history = History(running.topology)
        for snapshot in read_windows(probe, round(LEARN_S / WINDOW_S)):
            history.append(snapshot)
        network = Drs().model(running.topology, history, {})
        best = network.assign(total)
        for label, replicas in (("recommended", best), ("worse", worst(network, total))):
            running.set_replicas(dict(zip(names, replicas, strict=True)))
            time.sleep(SETTLE_S)
            seen = read_windows(probe, round(seconds / WINDOW_S))
            print(f"  {label:12} {report(seen, replicas, network.sojourn_s(replicas))}", flush=True)


def worst(network: Network, total: int) -> tuple[int, ...]:
    """The slowest of the allocations of ``total`` replicas that keep up."""
    parts = len(network.stations)
    every = itertools.product(range(1, total - parts + 2), repeat=parts)
    times = {k: network.sojourn_s(k) for k in every if sum(k) == total}
    return max((k for k in times if math.isfinite(times[k])), key=times.__getitem__)


def report(seen: list[Snapshot], replicas: tuple[int, ...], modelled_s: float) -> str:
    done = [s.completion for s in seen if s.completion is not None]
    inputs = sum(c.count for c in done)
    completed_s = sum(c.mean_ms * c.count for c in done) / max(inputs, 1.0) / 1e3
    return (
        f"{':'.join(map(str, replicas))}: completion {completed_s:.2f} s over {inputs:.0f} inputs, "
        f"sum of sojourns {mean([s.sojourn_sum_s for s in seen]):.2f} s measured, "
        f"{modelled_s:.2f} s modelled"
    )


if __name__ == "__main__":
    main()
