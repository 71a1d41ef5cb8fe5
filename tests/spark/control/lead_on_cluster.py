"""One load under ``foretide`` where capacity comes in slots or in executors, as a process of its
own: prints what the journal says about the lead time. ``MASTER`` decides: ``local[8]`` has free
slots, a standalone cluster begins with one executor.
"""

import json
import sys
from pathlib import Path

import numpy as np
from planned_run import WINDOW_S, planned_run

from foretide.journal import read
from foretide.load import Load
from foretide.model import Decision
from foretide.spark import Generator, Pipeline
from foretide.spark.control.live import LiveRun
from foretide.spark.declare.described import spend
from foretide.systems import system

LOW, HIGH = 5.0, 40.0
LOW_S, HIGH_S, MOST_S = 20, 60, 240
WAIT_S = 0.06


def pipeline() -> Pipeline:
    p = Pipeline("lead_time", trigger_s=1.0)
    rates = [LOW] * LOW_S + [HIGH] * HIGH_S + [LOW] * 400
    p.source("events", Generator(Load("up and down", np.array(rates))))

    def work(event: dict[str, object]) -> dict[str, object]:
        spend(WAIT_S, "wait")
        return {"id": event["id"]}

    p.operator(inputs="events", name="work", schema="id long", max_replicas=6)(work)
    p.sink("out", inputs="work")
    return p


def in_slots(folder: Path) -> list[Decision]:
    live = LiveRun(
        pipeline(),
        system("foretide"),
        folder,
        "act",
        WINDOW_S,
        target_latency_s=10.0,
        master="local[8]",
        short_run=True,
    )
    live.go(steps=int((LOW_S + HIGH_S) / WINDOW_S))
    return read(live.journal)[1]


def main(master: str, folder: Path) -> None:
    executors: list[int] = []
    if master.startswith("local"):
        decisions = in_slots(folder)
    else:
        scaler = system("foretide").promised(10.0)
        executors, decisions = planned_run(pipeline(), scaler, master, folder, MOST_S)
    planned = [d for d in decisions if d.plan is not None and d.snapshot is not None]
    lines = [
        {
            "lead_s": d.snapshot.lead_s,
            "window_s": d.snapshot.window_s,
            "replicas": d.plan.replicas["work"],
            "reason": d.plan.reasons["work"],
        }
        for d in planned
        if d.plan is not None and d.snapshot is not None
    ]
    failed = [d.error for d in decisions if d.outcome == "failed"]
    print(json.dumps({"executors": executors, "lines": lines, "failed": failed}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
