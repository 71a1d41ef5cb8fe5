"""FUGU on a standalone cluster, as a process of its own: one executor carries three operators and
gets hot, then the load falls. Prints what the journal holds.
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

from foretide.journal import read
from foretide.load import Load
from foretide.model import Decision
from foretide.spark import Generator, Pipeline
from foretide.spark.control.live import LiveRun
from foretide.spark.declare.described import spend
from foretide.systems import system

HIGH, LOW = 24.0, 2.0
HIGH_S, MOST_S = 70, 240
WAIT_S = 0.022
OPERATORS = ("a", "b", "c")
CONSTANTS = {"windows": 2, "grace_s": 6.0, "start_s": 60.0, "max_hosts": 3}


def pipeline() -> Pipeline:
    p = Pipeline("fugu_on_cluster", trigger_s=1.0)
    p.source("events", Generator(Load("fall", np.array([HIGH] * HIGH_S + [LOW] * 400))))
    for name, inputs in zip(OPERATORS, ("events", "a", "b"), strict=True):

        def work(event: dict[str, object]) -> dict[str, object]:
            spend(WAIT_S, "wait")
            return {"id": event["id"]}

        p.operator(inputs=inputs, name=name, schema="id long", max_replicas=4)(work)
    p.sink("out", inputs="c")
    return p


class Watch:
    """Ends the run once an operator has moved and the cluster is back at one executor."""

    def __init__(self) -> None:
        self.executors: list[int] = []
        self.moved = False

    def __call__(self, decision: Decision) -> None:
        snapshot = decision.snapshot
        if snapshot is None:
            return
        hosts = snapshot.hosts or ()
        self.executors.append(len(hosts))
        self.moved = self.moved or bool([m for m in snapshot.moves if m.source])
        text = {h.name: (round(h.utilization, 2), dict(h.loads)) for h in hosts}
        reason = decision.plan.reasons.get("") if decision.plan else decision.error
        print(text, snapshot.moves, reason, file=sys.stderr, flush=True)
        if self.moved and max(self.executors) > 1 and self.executors[-1] == 1:
            os.kill(os.getpid(), signal.SIGINT)


def main(master: str, folder: Path, name: str) -> None:
    settings = {
        "spark.executor.cores": "2",
        "spark.executor.memory": "640m",
        "spark.cores.max": "8",
        "spark.executor.instances": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    fugu = system(name)
    constants = {**fugu.planner_constants, **CONSTANTS}
    if name == "fugu-rl":
        del constants["windows"]
    fugu = system(name, planner_constants=constants)
    live = LiveRun(
        pipeline(), fugu, folder, "act", 3.0, master=master, short_run=True, spark_settings=settings
    )
    watch = Watch()
    live.go(watch, steps=int(MOST_S / 3))
    _, decisions = read(live.journal)
    moves = [m for d in decisions if d.snapshot for m in d.snapshot.moves if m.source]
    print(
        json.dumps(
            {
                "executors": watch.executors,
                "moves": [[m.operator, m.source, m.destination, m.standstill_s] for m in moves],
                "failed": [d.error for d in decisions if d.outcome == "failed"],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
