"""FUGU on a standalone cluster, as a process of its own: one executor carries three operators and
gets hot, then the load falls. Prints what the journal holds.
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

HIGH, LOW = 24.0, 2.0
HIGH_S, MOST_S = 90, 300
WAIT_S = 0.022
CONSTANTS = {"grace_s": 15.0, "start_s": 60.0, "max_hosts": 3}
PATIENCE = {"windows": 2}
"""Of the threshold planners; SARSA decides in every window."""


def pipeline() -> Pipeline:
    p = Pipeline("fugu_on_cluster", trigger_s=1.0)
    p.source("events", Generator(Load("fall", np.array([HIGH] * HIGH_S + [LOW] * 400))))
    for name, inputs in (("a", "events"), ("b", "a"), ("c", "b")):

        def work(event: dict[str, object]) -> dict[str, object]:
            spend(WAIT_S, "wait")
            return {"id": event["id"]}

        p.operator(inputs=inputs, name=name, schema="id long", max_replicas=4)(work)
    p.sink("out", inputs="c")
    return p


def visits(folder: Path) -> int:
    """How often the executor that learned most has learned; 0 for a planner without tables."""
    file = folder / "learned-sarsa.json"
    tables = json.loads(file.read_text())["tables"].values() if file.exists() else ()
    return max((int(sum(t["visits"])) for t in tables), default=0)


def main(master: str, folder: Path, name: str, most_s: float = MOST_S) -> None:
    published = system(name)
    constants = {**published.planner_constants, **CONSTANTS}
    if published.planner == "thresholds":
        constants |= PATIENCE
    fugu = system(name, planner_constants=constants)
    executors, decisions = planned_run(pipeline(), fugu, master, folder, most_s)
    moves = [m for d in decisions if d.snapshot for m in d.snapshot.moves if m.source]
    hosts = [h for d in decisions if d.snapshot for h in d.snapshot.hosts or ()]
    seen = {
        "executors": executors,
        "moves": [[m.operator, m.source, m.destination, m.standstill_s] for m in moves],
        "loads": sorted({(h.name, n) for h in hosts for n, used in h.loads.items() if used > 0}),
        "failed": [d.error for d in decisions if d.outcome == "failed"],
        "visits": visits(folder),
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], *map(float, sys.argv[4:]))
