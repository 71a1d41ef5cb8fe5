"""DRS on a standalone cluster, as a process of its own: the load rises and falls again, and so do
the executors, because DRS plans more and fewer replicas. Prints what the journal holds.
"""

import json
import sys
from pathlib import Path

import numpy as np
from planned_run import planned_run

from foretide.load import Load
from foretide.spark import Generator, Pipeline
from foretide.spark.declare.described import spend
from foretide.systems import system

LOW, HIGH = 5.0, 40.0
LOW_S, HIGH_S, MOST_S = 20, 75, 300
WAIT_S = 0.06
CONSTANTS = {"t_max_s": 10.0, "t_min_s": 8.0, "reallocate_after_s": 9.0, "smoothing": 2}


def pipeline() -> Pipeline:
    p = Pipeline("drs_on_cluster", trigger_s=1.0)
    rates = [LOW] * LOW_S + [HIGH] * HIGH_S + [LOW] * 400
    p.source("events", Generator(Load("up and down", np.array(rates))))

    def work(event: dict[str, object]) -> dict[str, object]:
        spend(WAIT_S, "wait")
        return {"id": event["id"]}

    p.operator(inputs="events", name="work", schema="id long", max_replicas=6)(work)
    p.sink("out", inputs="work")
    return p


def main(master: str, folder: Path) -> None:
    drs = system("drs", planner_constants=CONSTANTS)
    executors, decisions = planned_run(pipeline(), drs, master, folder, MOST_S)
    applied = [d.plan for d in decisions if d.outcome == "applied" and d.plan is not None]
    seen = {
        "executors": executors,
        "replicas": [p.replicas["work"] for p in applied],
        "reasons": [p.reasons[""] for p in applied],
        "failed": [d.error for d in decisions if d.outcome == "failed"],
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
