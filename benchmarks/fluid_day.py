"""The fluid mode beside the event engine on one day of the World Cup trace, through the whole loop.

Run: ``python benchmarks/fluid_day.py [--day 40] [--seeds 3]``; the trace is looked for in
``../shared/traces`` or ``FORETIDE_TRACES``. System ``srea`` scales twitter-linear (up to 64
replicas per operator); the trace is scaled so that its peak needs 50 replicas; windows of 60 s.
Printed, with batched and with Poisson arrivals: the mean backlog of the fluid mode and of the event
engine for each seed, and how far apart their means over the seeds are (the goal is 10 %). Batched
arrivals at fixed service times know no chance: one seed. With Poisson arrivals chance decides
whether a planner that rounds up asks for k or k + 1 replicas. The fluid mode has no chance of its
own, so the counts of its minutes are drawn beforehand; ``as given`` is its backlog with the counts
of the trace, ``same replicas`` its backlog with the replicas that the event engine's first run had,
window by window.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from foretide.apps import App, app
from foretide.load import Load, read_csv
from foretide.model import Plan, Snapshot
from foretide.sim.environment import Simulation
from foretide.systems import system
from foretide.topology import Topology

TRACE = (
    Path(os.environ.get("FORETIDE_TRACES", Path(__file__).parents[2] / "shared" / "traces"))
    / "worldcup98_http_1min.csv"
)
UNTIL_MIDNIGHT = 150  # minutes: the trace starts on 30 April 1998, 21:30
PEAK_REPLICAS = 50
FLUID_SEEDS = 8


def run(linear: App, load: Load, mode: str, seed: int = 0) -> list[Snapshot]:
    """The windows of a day under ``srea``."""
    environment = Simulation(linear, load, mode=mode, window_s=60.0, seed=seed)
    loop = system("srea").autoscaler(linear.topology, environment, environment)
    decisions = [loop.step(i * 60.0) for i in range(1, environment.windows + 1)]
    return [d.snapshot for d in decisions if d.snapshot]


def again(linear: App, load: Load, seen: list[Snapshot]) -> list[Snapshot]:
    """The fluid mode with the replicas of another run, window by window."""
    environment = Simulation(linear, load, mode="fluid", window_s=60.0)
    found = []
    for window in seen:
        environment.apply(Plan({n: s.replicas for n, s in window.samples.items()}))
        found.append(environment.read(window.at))
    return found


def mean_backlog(seen: list[Snapshot]) -> float:
    """Events that wait or are served at the end of a window, summed over the operators; mean over
    the windows.
    """
    return float(np.mean([sum(s.backlog for s in window.samples.values()) for window in seen]))


def drawn(load: Load, seed: int) -> Load:
    """The load with Poisson counts."""
    return Load(
        load.name, np.random.default_rng(seed).poisson(load.counts).astype(float), load.interval_s
    )


def listed(backlogs: list[float]) -> str:
    return ", ".join(f"{b:.0f}" for b in backlogs)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--day", type=int, default=40, help="days after 1 May 1998 (40: 10 June)")
    parser.add_argument("--seeds", type=int, default=3, help="event runs with Poisson arrivals")
    chosen = parser.parse_args()
    if not TRACE.exists():
        print(f"{TRACE.name} is not here: set FORETIDE_TRACES to the folder that holds it")
        return 1
    whole, linear = read_csv(TRACE), app("twitter-linear")
    linear = replace(
        linear,
        topology=Topology(tuple(replace(o, max_replicas=64) for o in linear.topology.operators)),
    )
    scale = PEAK_REPLICAS / (
        whole.peak * sum(v * linear.service_s(n) for n, v in linear.visits().items())
    )
    first = chosen.day * 1440 + UNTIL_MIDNIGHT
    load = Load("one day", whole.counts[first : first + 1440] * scale, 60.0)
    print(f"{load.counts.sum():,.0f} events, scale {scale:.3f}")
    for arrivals, seeds in (("batch", 1), ("poisson", chosen.seeds)):
        varied = replace(linear, arrivals=arrivals)
        given = mean_backlog(run(varied, load, "fluid"))
        fluid = (
            [mean_backlog(run(varied, drawn(load, seed), "fluid")) for seed in range(FLUID_SEEDS)]
            if seeds > 1
            else [given]
        )
        windows = [run(varied, load, "events", seed) for seed in range(seeds)]
        events = [mean_backlog(w) for w in windows]
        apart = float(np.mean(fluid) / np.mean(events)) - 1
        print(
            f"{arrivals}: fluid {listed(fluid)}; events {listed(events)}; apart {apart:+.1%} "
            "(goal: 10 %)"
        )
        print(
            f"  fluid as given {given:.0f}, with the same replicas "
            f"{mean_backlog(again(varied, load, windows[0])):.0f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
