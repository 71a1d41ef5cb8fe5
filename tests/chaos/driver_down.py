"""A pipeline on a standalone cluster, as a process that a test kills. Its first life sets three
replicas per operator and runs until it is killed; a later one resumes, and prints the state it
started from as JSON.
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

LIMIT_S = 200.0


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
        "spark.executor.instances": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    first = not path.exists()
    spark = session("driver-down", master=master, short_run=True, settings=settings)
    p = Pipeline("driver_down", trigger_s=1.0)
    p.source("events", Generator(Load("endless", np.full(3000, 20.0)), max_events_per_batch=200))
    p.operator(inputs="events", name="a", max_replicas=8, schema="id long")(
        lambda e: {"id": e["id"]}
    )
    p.operator(inputs="a", name="b", max_replicas=8)(lambda e: e)
    p.sink("out", inputs="b")
    with Running(p, spark, path) as running:
        executors = ExecutorPool(spark)
        actuator = PipelineActuator(running, executors)
        begun = running.accounts.latest("b").batch
        before = dict(running.replicas)
        if first:
            actuator.apply(Plan({"a": 3, "b": 3}))
        else:
            actuator.resume()
        until(running, lambda: running.accounts.latest("b").batch >= begun + 3, "three batches")
        until(running, lambda: len(executors.names()) == 3, "three executors")
        print(json.dumps({"replicas": before, "executors": len(executors.names())}), flush=True)
        if first:
            until(running, lambda: False, "to be killed")
        count = running.accounts.latest("b").delivered["sink.out"]
    ids = sorted(r["id"] for r in running.read("out").select("id").collect())
    print(json.dumps({"exactly_once": ids == list(range(len(ids))), "all": len(ids) >= count}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
