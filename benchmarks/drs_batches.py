"""DRS's model of micro-batches against Spark: learned with some replicas, asked for others.

python benchmarks/drs_batches.py [--app chain] [--rate 20] [--seconds 40]    needs Java

The app runs with the first replicas, then with the second ones. The model knows the windows of the
first part only and says how long an event stays in each operator in the second part.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time

import numpy as np

from foretide.apps import app as app_named
from foretide.history import History
from foretide.load import Load
from foretide.model import Snapshot
from foretide.plan.drs import Drs
from foretide.quantities import sojourn_sum_s
from foretide.spark import Running, session
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.probe import PipelineProbe
from foretide.spark.declare.described import described

WINDOW_S, WARM_UP_S = 5.0, 25.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--app", default="chain")
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=40.0, help="of each part")
    parser.add_argument("--busy", type=float, default=0.7, help="of the first replicas")
    given = parser.parse_args()
    app = app_named(given.app)
    busy = {n: given.rate * v * app.service_s(n) for n, v in app.visits().items()}
    first = {n: max(1, math.ceil(b / given.busy)) for n, b in busy.items()}
    second = {n: 2 * k for n, k in first.items()}
    windows = round(given.seconds / WINDOW_S)
    load = Load("level", np.full(int(WARM_UP_S + 2 * given.seconds + 120), given.rate))
    spark = session("drs-batches", master="local[32]", short_run=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        Running(described(app, load), spark, folder) as running,
    ):
        probe = PipelineProbe(running, ExecutorPool(spark))
        running.set_replicas(first)
        time.sleep(WARM_UP_S)
        running.accounts.take()
        parts = []
        for replicas in (first, second):
            running.set_replicas(replicas)
            time.sleep(WINDOW_S)
            parts.append(read_windows(probe, windows))
    spark.stop()
    report(running, parts, second)


def read_windows(probe: PipelineProbe, windows: int) -> list[Snapshot]:
    """Windows one after another; what was measured before them is left out."""
    try:
        probe.read(time.time())
    except Exception as error:  # the first read only opens the first window
        print(f"({error})")
    seen = []
    for _ in range(windows):
        time.sleep(WINDOW_S)
        seen.append(probe.read(time.time()))
    return seen


def report(running: Running, parts: list[list[Snapshot]], second: dict[str, int]) -> None:
    history = History(running.topology)
    for snapshot in parts[0]:
        history.append(snapshot)
    network = Drs().model(running.topology, history, {})
    print(f"model: {type(network).__name__}, load {network.load:.1f} events/s")
    for name, station in zip(running.topology.names, network.stations, strict=True):
        for label, part in (("as learned", parts[0]), ("other replicas", parts[1])):
            real = mean([s.samples[name].sojourn_s for s in part])
            k = part[-1].samples[name].replicas
            said = station.sojourn_s(k)  # type: ignore[union-attr]
            print(
                f"  {name:10} {label:14} {k:3} replicas: {real:.2f} s on Spark, {said:.2f} s "
                f"modelled: {said / real - 1:+.1%}"
            )
    real = mean([sojourn_sum_s(s.samples) for s in parts[1]])
    said = network.sojourn_s([second[n] for n in running.topology.names])
    print(
        f"sum of sojourns with the other replicas: {real:.2f} s on Spark, {said:.2f} s modelled: "
        f"{said / real - 1:+.1%} (target: within 15 %)"
    )


def mean(figures: list[float | None]) -> float:
    return float(np.mean([f for f in figures if f is not None]))


if __name__ == "__main__":
    main()
