"""The fluid mode beside the event engine on one day of the World Cup trace, through the whole loop.

Run: ``python benchmarks/fluid_day.py [--day 40] [--seeds 3]``; the trace is looked for in ``../shared/traces`` or ``FORETIDE_TRACES``.
System ``srea`` scales twitter-linear (up to 64 replicas per operator); the trace is scaled so that its peak needs 50 replicas; windows of
60 s. Printed, with batched and with Poisson arrivals: the mean backlog of the fluid mode, of the event engine for each seed, and how far
apart the fluid mode and the mean over the seeds are (the goal is 10 %). Batched arrivals at fixed service times know no chance: one seed.
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
from foretide.sim.world import World
from foretide.systems import system
from foretide.topology import Topology

TRACE = Path(os.environ.get("FORETIDE_TRACES", Path(__file__).parents[2] / "shared" / "traces")) / "worldcup98_http_1min.csv"
UNTIL_MIDNIGHT = 150  # minutes: the trace starts on 30 April 1998, 21:30
PEAK_REPLICAS = 50


def mean_backlog(linear: App, load: Load, mode: str, seed: int = 0) -> float:
    """Events that wait or are served at the end of a window, summed over the operators; mean over the windows."""
    world = World(linear, load, mode=mode, window_s=60.0, seed=seed)
    loop = system("srea").autoscaler(linear.topology, world, world)
    decisions = [loop.step(i * 60.0) for i in range(1, world.windows + 1)]
    return float(np.mean([sum(s.backlog for s in d.snapshot.samples.values()) for d in decisions if d.snapshot]))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--day", type=int, default=40, help="days after 1 May 1998 (40: 10 June)")
    parser.add_argument("--seeds", type=int, default=3, help="event runs with Poisson arrivals")
    chosen = parser.parse_args()
    if not TRACE.exists():
        print(f"{TRACE.name} is not here: set FORETIDE_TRACES to the folder that holds it")
        return 1
    whole, linear = read_csv(TRACE), app("twitter-linear")
    linear = replace(linear, topology=Topology(tuple(replace(o, max_replicas=64) for o in linear.topology.operators)))
    scale = PEAK_REPLICAS / (whole.peak * sum(v * linear.service_s(n) for n, v in linear.visits().items()))
    first = chosen.day * 1440 + UNTIL_MIDNIGHT
    load = Load("one day", whole.counts[first : first + 1440] * scale, 60.0)
    print(f"{load.counts.sum():,.0f} events, scale {scale:.3f}")
    for arrivals, seeds in (("batch", 1), ("poisson", chosen.seeds)):
        varied = replace(linear, arrivals=arrivals)
        fluid = mean_backlog(varied, load, "fluid")
        events = [mean_backlog(varied, load, "events", seed) for seed in range(seeds)]
        apart = fluid / float(np.mean(events)) - 1
        seen = ", ".join(f"{e:.0f}" for e in events)
        print(f"{arrivals:8} fluid {fluid:7.0f}   events {seen}   apart {apart:+.1%} (goal: 10 %)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
