"""DRS on a standalone cluster, as a process of its own: the load rises and falls again, and so do
the executors, because DRS plans more and fewer replicas. Prints what the journal holds.
"""

import json
import sys
from pathlib import Path

from planned_run import planned_run, up_and_down

from foretide.systems import system

HIGH_S, MOST_S = 75, 300
CONSTANTS = {"t_max_s": 10.0, "t_min_s": 8.0, "reallocate_after_s": 9.0, "smoothing": 2}


def main(master: str, folder: Path) -> None:
    drs = system("drs", planner_constants=CONSTANTS)
    pipeline = up_and_down("drs_on_cluster", HIGH_S)
    executors, decisions = planned_run(pipeline, drs, master, folder, MOST_S)
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
