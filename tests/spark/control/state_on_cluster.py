"""A stateful operator on a standalone cluster, as a process of its own: its plan names one
executor, then another, and its state goes along. Prints where its tasks ran and what it counted.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running, session
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.run.placing import SETTINGS
from foretide.spark.worker.executor import executor_name

LIMIT_S = 150.0
EVENTS, KEYS = 4000, 5
CLUSTER = {
    "spark.executor.cores": "2",
    "spark.executor.memory": "640m",
    "spark.cores.max": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def pipeline() -> Pipeline:
    p = Pipeline("state_on_cluster", trigger_s=0.5)
    p.source("events", Generator(Load("level", np.full(EVENTS // 40, 40.0))))
    p.operator(inputs="events", name="ingest", schema="key long")(lambda e: {"key": e["id"] % KEYS})

    @p.frame(inputs="ingest", max_replicas=3, output_mode="update")
    def totals(frame: DataFrame) -> DataFrame:
        ran_on = sf.udf(executor_name, "string").asNondeterministic()
        counted = frame.groupBy("key").agg(sf.count("*").alias("n"), sf.max("_at").alias("_at"))
        return counted.select("key", "n", ran_on().alias("ran_on"), "_at")

    p.sink("counts", inputs="totals")
    return p


def until(test: Callable[[], bool], running: Running, what: str) -> None:
    end = time.monotonic() + LIMIT_S
    while not test():
        running.check()
        if time.monotonic() > end:
            raise SystemExit(f"not in time: {what}")
        time.sleep(0.2)


def main(master: str, folder: Path) -> None:
    spark = session("state_on_cluster", master, True, {**CLUSTER, **SETTINGS})
    pool = ExecutorPool(spark)
    with Running(pipeline(), spark, folder) as running:
        until(lambda: len(pool.live()) == 2, running, "two executors")
        seen, moves = [], []
        for executor in sorted(pool.live()) * 2:
            batch = running.accounts.latest("totals").batch
            running.placement.ask({"totals": (executor,)}, pool.locations())
            until(
                lambda after=batch + 3: running.accounts.latest("totals").batch >= after,
                running,
                f"three batches after {batch}",
            )
            newest = running.read("counts").groupBy("key").agg(sf.max_by("ran_on", "n").alias("on"))
            seen.append((executor, sorted({r["on"] for r in newest.collect()})))
            moves += [[m.source, m.destination, m.standstill_s] for m in running.placement.moves()]
        running.wait(LIMIT_S)
        counts = running.read("counts").groupBy("key").agg(sf.max("n").alias("n")).collect()
    spark.stop()
    print(json.dumps({"ran_on": seen, "moves": moves, "counts": [r["n"] for r in counts]}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
