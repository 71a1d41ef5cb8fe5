"""foretide in micro-batches: does it keep its promise there, and what does that cost?

The chain of ``frontier.py`` in a twin with batches of 1 s and a fixed cost of 0.2 s per operator,
a step every 5 s, as far as the recorded loads of short rows reach (the World Cup: 35 minutes). The
first 60 windows do not count. Costs are over the need of each window, which knows no latency. The
peer in the same run replays its rules with the whole delay, as if events were served one by one.

    python benchmarks/batches.py ../shared/traces
    python benchmarks/batches.py TRACES --loads ticks --leads 10 --targets 15
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from unittest import mock

import numpy as np
from frontier import WINDOW_S, chain, trace

from foretide.figures.metrics import figures
from foretide.figures.record import RunRecord
from foretide.journal import Run
from foretide.load import Load
from foretide.model import Decision
from foretide.plan.promise import outlook
from foretide.sim.environment import Simulation
from foretide.sim.events.batch import BatchCosts
from foretide.sim.reconfigure import Pool
from foretide.systems import system

ROWS = {
    "dns-zeek": 800,
    "ticks": 400,
    "azure-llm": 800,
    "pasps-log": 800,
    "worldcup": 35,
    "twitter-raw": 800,
}
WARM_UP, TRIGGER_S, FIXED_S = 60, 1.0, 0.2
Outcome = tuple[float, float]


def outcome(load: Load, lead_s: float, target_s: float, warm_up: int = WARM_UP) -> Outcome:
    """Share in target and cost over the optimum, after the warm-up."""
    app, name = chain(), "foretide"
    batch = BatchCosts(
        TRIGGER_S, task_s=0.0, overheads_s=dict.fromkeys(app.topology.names, FIXED_S)
    )
    twin = Simulation(
        app,
        load,
        mode="batch",
        batch=batch,
        window_s=WINDOW_S,
        target_latency_s=target_s,
        reconfiguration=Pool(lead_s),
    )
    book: list[Decision] = []
    promised = system(name).promised(target_s)
    loop = promised.autoscaler(app.topology, twin, twin, "act", book.append)
    for window in range(1, int(load.duration_s / WINDOW_S) + 1):
        loop.step(WINDOW_S * window)
    run = Run("batches", name, app.topology, WINDOW_S, 0.0, "act", target_s)
    found = figures(RunRecord.of_journal(run, book).since(warm_up))
    return found.slo_share or 0.0, found.cost_ratio or np.nan


def shown(outcomes: list[Outcome]) -> str:
    share, cost = np.mean(outcomes, axis=0)
    return f"{100 * share:.1f} % at {cost:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("traces", type=Path, nargs="?", default=Path("../shared/traces"))
    parser.add_argument("--loads", default=",".join(ROWS))
    parser.add_argument("--leads", default="0,10", help="seconds")
    parser.add_argument("--targets", default="5,15", help="seconds")
    asked = parser.parse_args()
    if not asked.traces.is_dir():
        print(f"{asked.traces} is not a folder: the recorded loads are not here, nothing to do")
        sys.exit(0)
    print("| load | lead s | target s | whole delay | a quarter of it, as built |")
    print("|---|---|---|---|---|")
    whole, built = [], []
    for name in asked.loads.split(","):
        load = trace(asked.traces, name, ROWS[name])
        for lead_s in map(float, asked.leads.split(",")):
            for target_s in map(float, asked.targets.split(",")):
                with mock.patch.object(outlook, "IN_BATCHES", 1.0):
                    whole.append(outcome(load, lead_s, target_s))
                built.append(outcome(load, lead_s, target_s))
                cells = f"{shown(whole[-1:])} | {shown(built[-1:])}"
                print(f"| {name} | {lead_s:g} | {target_s:g} | {cells} |", flush=True)
    print(f"| mean | | | {shown(whole)} | {shown(built)} |")
    kept = [sum(share >= 0.99 for share, _ in found) for found in (whole, built)]
    print(f"\n99 % were kept in {kept[0]} and {kept[1]} of {len(built)} cases.")


if __name__ == "__main__":
    main()
