"""A live run on a standalone cluster that begins with one executor and ends when the executors have
grown and shrunk; for scripts that tests start as processes of their own.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from foretide.journal import read
from foretide.load import Load
from foretide.model import Decision
from foretide.spark import Generator, Pipeline, session
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.live import LiveRun
from foretide.spark.declare.described import spend
from foretide.spark.run.placing import SETTINGS
from foretide.systems import System

WINDOW_S = 3.0
LIMIT_S = 120.0
CLUSTER = {
    "spark.executor.cores": "2",
    "spark.executor.memory": "640m",
    "spark.cores.max": "8",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

LOW, HIGH, LOW_S = 5.0, 40.0, 20
WAIT_S = 0.06


def up_and_down(name: str, high_s: int) -> Pipeline:
    """One operator that waits, under a load that rises for so long and falls."""
    p = Pipeline(name, trigger_s=1.0)
    rates = [LOW] * LOW_S + [HIGH] * high_s + [LOW] * 400
    p.source("events", Generator(Load("up and down", np.array(rates))))

    def work(event: dict[str, object]) -> dict[str, object]:
        spend(WAIT_S, "wait")
        return {"id": event["id"]}

    p.operator(inputs="events", name="work", schema="id long", max_replicas=6)(work)
    p.sink("out", inputs="work")
    return p


class Watch:
    """Keeps the number of executors of every window; ends the run once it has risen above one and
    fallen back, and when operators must move, one has.
    """

    def __init__(self, moves: bool) -> None:
        self.executors: list[int] = []
        self.moved = not moves

    def __call__(self, decision: Decision) -> None:
        snapshot = decision.snapshot
        if snapshot is None:
            return
        hosts = snapshot.hosts or ()
        self.executors.append(len(hosts))
        self.moved = self.moved or bool([m for m in snapshot.moves if m.source])
        used = {h.name: round(h.utilization, 2) for h in hosts}
        replicas = {n: s.replicas for n, s in snapshot.samples.items()}
        reason = decision.plan.reasons.get("") if decision.plan else decision.error
        print(used, replicas, snapshot.moves, decision.outcome, reason, file=sys.stderr, flush=True)
        if self.moved and max(self.executors) > 1 and self.executors[-1] == 1:
            os.kill(os.getpid(), signal.SIGINT)


def planned_run(
    pipeline: Pipeline, scaler: System, master: str, folder: Path, most_s: float, **options: Any
) -> tuple[list[int], list[Decision]]:
    """(executors per window, decisions) of a run of ``most_s`` seconds at most; ``options`` are
    those of LiveRun.
    """
    placing = SETTINGS if scaler.places_operators else {}
    spark = session(pipeline.name, master, True, {**CLUSTER, **placing})
    pool = ExecutorPool(spark)
    until = time.monotonic() + LIMIT_S
    while len(pool.live()) != 1:  # a standalone cluster grants all cores at first
        pool.request(1)
        if time.monotonic() > until:
            raise SystemExit("not in time: one executor")
        time.sleep(0.5)
    watch = Watch(scaler.places_operators)
    live = LiveRun(
        pipeline, scaler, folder, "act", WINDOW_S, master=master, short_run=True, **options
    )
    live.go(watch, steps=int(most_s / WINDOW_S), spark=spark)
    spark.stop()
    return watch.executors, read(live.journal)[1]
