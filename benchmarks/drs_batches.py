"""DRS's model of micro-batches against Spark: learned with some replicas, asked for others.

python benchmarks/drs_batches.py [--app chain] [--rate 20] [--seconds 40]    needs Java
python benchmarks/drs_batches.py --simulated      five apps, 45 changes, in the event simulator

The app runs with the first replicas, then with the second ones. The model knows the windows of the
first part only and says how long an event stays in each operator in the second part.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time

import numpy as np

from foretide.apps import App
from foretide.apps import app as app_named
from foretide.history import History
from foretide.load import Load
from foretide.model import Plan, Snapshot
from foretide.plan.batch_network import BatchNetwork
from foretide.plan.drs import Drs, DrsSettings
from foretide.quantities import sojourn_sum_s
from foretide.sim.environment import Simulation, SimulationSettings
from foretide.sim.events.batch import BatchCosts
from foretide.spark import Running, session
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.probe import PipelineProbe
from foretide.spark.declare.described import described

WINDOW_S, WARM_UP_S = 5.0, 60.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--app", default="chain")
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=40.0, help="of each part")
    parser.add_argument("--busy", type=float, default=0.5, help="of the first replicas")
    parser.add_argument("--trigger", type=float, default=2.0)
    parser.add_argument("--simulated", action="store_true", help="no Spark: the event simulator")
    given = parser.parse_args()
    if given.simulated:
        simulated()
        return
    app = app_named(given.app)
    first = replicas_for(app, given.rate, given.busy)
    second = {n: 2 * k for n, k in first.items()}
    windows = round(given.seconds / WINDOW_S)
    load = Load("level", np.full(int(WARM_UP_S + 2 * given.seconds + 120), given.rate))
    spark = session("drs-batches", master="local[32]", short_run=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        Running(described(app, load, trigger_s=given.trigger), spark, folder) as running,
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


def simulated() -> None:
    """Every app at three loads through three changes of replicas, from busy to idle and back."""
    errors = []
    for name in ("chain", "two-paths", "loop-back", "vld", "fpd"):
        app = app_named(name)
        for rate in (2.0, 5.0, 8.75) if name == "vld" else (8.0, 20.0, 35.0):
            for busy in ((0.7, 0.35), (0.35, 0.7), (0.85, 0.5)):
                real, said = changed(app, rate, [replicas_for(app, rate, b) for b in busy])
                errors.append(said / real - 1)
                print(
                    f"{name:10} {rate:5g}/s, replicas {busy[0]:.0%} then {busy[1]:.0%} busy: "
                    f"{real:6.2f} s simulated, {said:6.2f} s modelled: {errors[-1]:+.0%}"
                )
    off = np.abs(errors)
    print(
        f"sum of sojourns on other replicas: median error {np.median(off):.1%}, "
        f"p90 {np.quantile(off, 0.9):.1%}, {np.mean(off <= 0.15):.0%} of {len(off)} within 15 %"
    )


def replicas_for(app: App, rate: float, busy: float) -> dict[str, int]:
    return {
        n: min(32, max(1, math.ceil(rate * v * app.service_s(n) / busy)))
        for n, v in app.visits().items()
    }


def changed(app: App, rate: float, replicas: list[dict[str, int]]) -> tuple[float, float]:
    """Mean sum of sojourns with the second replicas: simulated, and modelled from the first."""
    settings = SimulationSettings(mode="batch", window_s=10.0, batch=BatchCosts(overhead_s=0.4))
    load = Load("level", np.full(700, rate))
    environment = Simulation(app, load, settings, replicas=replicas[0])
    history, at = History(app.topology), 40.0
    environment.read(at)
    for _ in range(16):
        at += 10.0
        history.append(environment.read(at))
    network = Drs(DrsSettings(smoothing=12)).model(app.topology, history, {})
    environment.apply(Plan(replicas[1]))
    environment.read(at := at + 40.0)
    seen = []
    for _ in range(30):
        at += 10.0
        seen.append(environment.read(at).sojourn_sum_s)
    return mean(seen), network.sojourn_s([replicas[1][n] for n in app.topology.names])


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
    assert isinstance(network, BatchNetwork), "no operator reported micro-batches"
    for label, part in (("as learned", parts[0]), ("other replicas", parts[1])):
        replicas = [part[-1].samples[n].replicas for n in running.topology.names]
        stations = zip(running.topology.names, network.paced(replicas), replicas, strict=True)
        for name, station, k in stations:
            real = mean([s.samples[name].sojourn_s for s in part])
            said = station.sojourn_s(k)
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
