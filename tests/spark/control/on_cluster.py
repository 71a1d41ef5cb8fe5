"""A pipeline on a standalone cluster that a test starts as a process of its own: replicas 2, then
6, then 2; prints what it saw.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from foretide.load import Load
from foretide.model import Plan
from foretide.spark import Generator, Pipeline, Running, session
from foretide.spark.control.actuator import PipelineActuator
from foretide.spark.control.executors import ExecutorPool

LIMIT_S = 150.0


def until(running: Running, test: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LIMIT_S
    while not test():
        running.check()
        if time.monotonic() > end:
            raise SystemExit(f"not in time: {what}")
        time.sleep(0.2)


def main(master: str, path: Path) -> None:
    settings = {
        "spark.executor.cores": "2",
        "spark.executor.memory": "640m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    spark = session("on-cluster", master=master, short_run=True, settings=settings)
    p = Pipeline("on_cluster", trigger_s=1.0)
    p.source("events", Generator(Load("endless", np.full(1200, 20.0))))
    p.operator(inputs="events", name="a", max_replicas=8, schema="id long")(
        lambda e: {"id": e["id"]}
    )
    p.operator(inputs="a", name="b", max_replicas=8)(lambda e: e)
    p.sink("out", inputs="b")
    seen: dict[str, object] = {}
    with Running(p, spark, path) as running:
        executors = ExecutorPool(spark)
        actuator = PipelineActuator(running, executors)

        def batches() -> int:
            return running.accounts.latest("b").batch

        def phase(name: str, replicas: int, wanted: int) -> None:
            actuator.apply(Plan({"a": replicas, "b": replicas}))
            until(
                running,
                lambda: len(executors.names()) == wanted,
                f"{wanted} executors for {2 * replicas} replicas",
            )
            start = batches()
            until(running, lambda: batches() >= start + 3, f"batches in phase {name}")
            running.check()
            seen[name] = len(executors.names())
            print(
                f"phase {name}: executors {executors.names()}, batch {batches()}",
                file=sys.stderr,
                flush=True,
            )

        phase("two", 1, 1)
        phase("six", 3, 3)
        phase("two again", 1, 1)
        until(running, lambda: len(executors.live()) == 1, "the released executors to be gone")
        with running.accounts.changed:
            count = running.accounts.consumed("b")
    found = spark.read.parquet(str(path / "output" / "out"))
    ids = sorted(r["id"] for r in found.select("id").collect())
    seen["exactly_once"] = ids == list(range(len(ids))) and len(ids) >= count > 0
    spark.stop()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
