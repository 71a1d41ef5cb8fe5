"""One load under ``foretide`` where capacity comes in slots or in executors, as a process of its
own: prints what the journal says about the lead time. ``MASTER`` decides: ``local[8]`` has free
slots, a standalone cluster begins with one executor.
"""

import json
import sys
from pathlib import Path

from planned_run import LOW_S, WINDOW_S, planned_run, up_and_down

from foretide.journal import read
from foretide.model import Decision
from foretide.spark.control.live import LiveRun
from foretide.systems import system

HIGH_S, MOST_S = 60, 240


def in_slots(folder: Path) -> list[Decision]:
    live = LiveRun(
        up_and_down("lead_time", HIGH_S),
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
        pipeline = up_and_down("lead_time", HIGH_S)
        executors, decisions = planned_run(pipeline, scaler, master, folder, MOST_S)
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
