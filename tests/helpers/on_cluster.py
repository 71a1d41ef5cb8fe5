"""A pipeline on a standalone cluster that a test starts as a process of its own, in one of four
roles; prints what it saw as JSON. Usage: python on_cluster.py ROLE MASTER FOLDER

phases: 2 replicas in all, then 6, then 2. pool: executors for three replicas of each operator, then
the replicas. first: 6 replicas, until it is killed. again: goes on where a killed one was.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from foretide.load import Load
from foretide.model import Plan
from foretide.spark import Generator, Pipeline, Running, session
from foretide.spark.control.actuator import PipelineActuator
from foretide.spark.control.executors import ExecutorPool

LIMIT_S = 150.0
SETTINGS = {
    "spark.executor.cores": "2",
    "spark.executor.memory": "640m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def pipeline() -> Pipeline:
    p = Pipeline("on_cluster", trigger_s=1.0)
    p.source("events", Generator(Load("endless", np.full(3000, 20.0)), max_events_per_batch=200))
    p.operator(inputs="events", name="a", max_replicas=8, schema="id long")(
        lambda e: {"id": e["id"]}
    )
    p.operator(inputs="a", name="b", max_replicas=8)(lambda e: e)
    p.sink("out", inputs="b")
    return p


class OnCluster:
    """A running pipeline and its executors."""

    def __init__(self, running: Running, spark: SparkSession) -> None:
        self.running = running
        self.executors = ExecutorPool(spark)
        self.actuator = PipelineActuator(running, self.executors)

    def until(self, test: Callable[[], bool], what: str) -> None:
        """Wait as the live loop does, with one window after another."""
        end = time.monotonic() + LIMIT_S
        while not test():
            self.running.check()
            self.executors.settle()
            if time.monotonic() > end:
                raise SystemExit(f"not in time: {what}; executors {self.executors.live()}")
            time.sleep(0.2)

    def until_in_use(self, count: int) -> None:
        """So many executors; others may be on their way out."""
        self.until(lambda: len(self.executors.names()) == count, f"{count} executors in use")

    def until_only(self, count: int) -> None:
        """So many executors, and none on its way out."""
        self.until(
            lambda: len(self.executors.names()) == len(self.executors.live()) == count,
            f"{count} executors",
        )

    def until_batches(self, more: int = 3) -> None:
        start = self.running.accounts.latest("b").batch
        self.until(
            lambda: self.running.accounts.latest("b").batch >= start + more, f"{more} batches"
        )


def pooled(on: OnCluster) -> dict[str, object]:
    """A pool of three replicas per operator: executors come first, replicas are activated later."""
    on.actuator = PipelineActuator(on.running, on.executors, pool=3)
    on.actuator.resume()
    on.until_only(3)
    idle, before = dict(on.running.replicas), set(on.executors.names())
    running_batch = on.running.accounts.latest("a").batch + 1
    on.actuator.apply(Plan({"a": 3, "b": 3}))
    on.until(lambda: on.running.accounts.latest("a").batch > running_batch, "the next batch")
    return {
        "replicas before": idle,
        "replicas of the next batch": on.running.accounts.latest("a").replicas,
        "same executors": before == set(on.executors.names()),
    }


def phases(on: OnCluster) -> dict[str, int]:
    seen = {}
    for name, replicas, wanted in (("two", 1, 1), ("six", 3, 3), ("two again", 1, 1)):
        on.actuator.apply(Plan({"a": replicas, "b": replicas}))
        on.until_in_use(wanted)
        on.until_batches()
        seen[name] = len(on.executors.names())
    on.until_only(1)
    return seen


def main(role: str, master: str, path: Path) -> None:
    spark = session("on-cluster", master=master, short_run=True, settings=SETTINGS)
    with Running(pipeline(), spark, path) as running:
        on = OnCluster(running, spark)
        replicas = dict(running.replicas)
        if role == "phases":
            print(json.dumps(phases(on)), flush=True)
        elif role == "pool":
            print(json.dumps(pooled(on)), flush=True)
        else:
            if role == "first":
                on.actuator.apply(Plan({"a": 3, "b": 3}))
            else:
                on.actuator.resume()
            on.until_only(3)
            on.until_batches()
            print(json.dumps({"replicas": replicas, "executors": 3}), flush=True)
            if role == "first":
                on.until(lambda: False, "to be killed")
        with running.accounts.changed:
            count = running.accounts.consumed("b")
    held = spark.read.parquet(str(path / "output" / "out"))
    ids = sorted(r["id"] for r in held.select("id").collect())
    print(json.dumps({"exactly_once": ids == list(range(len(ids))) and len(ids) >= count > 0}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
