"""PA-SPS, BGElasor or DABS-Storm on a standalone cluster, as a process of its own: the load rises
and falls again. Prints what the journal holds. Usage: published_on_cluster.py MASTER FOLDER SYSTEM
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from planned_run import HIGH, LOW, LOW_S, WINDOW_S, planned_run, up_and_down

from foretide.apps import app
from foretide.forecast.pretrained import train
from foretide.load import Load
from foretide.model import Decision
from foretide.spark import Pipeline
from foretide.spark.declare.described import described
from foretide.systems import System, system

HIGH_S, MOST_S = 60, 160
NETWORK = {"lookback": 8, "horizon": 10, "hidden": 8, "rounds": 20}
POOL = 4


def pa_sps() -> tuple[Pipeline, System, str, dict[str, Any]]:
    return up_and_down("pa_sps_on_cluster", HIGH_S), system("pa-sps"), "work", {"pool": POOL}


def bgelasor() -> tuple[Pipeline, System, str, dict[str, Any]]:
    """Its network learned from earlier rises and falls."""
    cycle = [LOW] * LOW_S + [HIGH] * HIGH_S + [LOW] * 40
    trained = train(Load("earlier", np.array(8 * cycle)), "bigru", WINDOW_S, **NETWORK)
    chosen = system("bgelasor").with_pretrained(trained)
    return up_and_down("bgelasor_on_cluster", HIGH_S), chosen, "work", {"past": trained.past}


def dabs_storm() -> tuple[Pipeline, System, str, dict[str, Any]]:
    """The sensitive chain, beta as section 6 asks for with OSG."""
    chosen = system("dabs-storm")
    chosen = system(
        "dabs-storm", planner_constants={**chosen.planner_constants, "beta": 0.1, "settle_s": 4.0}
    )
    rates = [LOW] * LOW_S + [HIGH] * HIGH_S + [LOW] * 400
    pipeline = described(app("sensitive"), Load("up and down", np.array(rates)))
    pipeline.limit_replicas(6)
    return pipeline, chosen, "work", {}


SYSTEMS = {"pa-sps": pa_sps, "bgelasor": bgelasor, "dabs-storm": dabs_storm}


def counted(decisions: list[Decision], operator: str) -> dict[str, Any]:
    windows = [d.snapshot for d in decisions if d.snapshot is not None]
    samples = [w.samples[operator] for w in windows]
    every = [s for w in windows for s in w.samples.values()]
    return {
        "replicas": [s.replicas for s in samples],
        "phases": [p for s in samples for p in s.phases],
        "offered": sum(s.offered or 0.0 for s in every),
        "dropped": sum(s.dropped or 0.0 for s in every),
        "forecasts": [sorted(d.forecasts) for d in decisions if d.snapshot is not None],
        "failed": [d.error for d in decisions if d.outcome == "failed"],
    }


def main(master: str, folder: Path, name: str) -> None:
    pipeline, chosen, operator, options = SYSTEMS[name]()
    executors, decisions = planned_run(pipeline, chosen, master, folder, MOST_S, **options)
    print(json.dumps({"executors": executors, **counted(decisions, operator)}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
