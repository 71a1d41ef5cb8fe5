"""A pipeline with Kafka edges and everything it keeps in a store, as a process of its own: it runs
some of the load and ends as a crash would, or runs to the end and prints what came out.

Usage: on_store.py FOLDER SERVERS STORE some|all SETTINGS
SETTINGS are Spark's, as JSON.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running, kafka, session

EVENTS = 200


def declared(servers: str, store: str) -> Pipeline:
    p = Pipeline("on_store", trigger_s=0.3, edges=kafka(servers), store=store)
    burst = Load("burst", np.array([float(EVENTS)]), 0.01)
    p.source("events", Generator(burst, max_events_per_batch=50, keys=4))

    @p.operator(inputs="events", max_replicas=2, schema="id long, key long")
    def work(event: dict[str, Any]) -> dict[str, Any]:
        return {"id": event["id"], "key": event["key"]}

    @p.frame(inputs="work", stateful=True, output_mode="update", max_replicas=2)
    def count(frame: DataFrame) -> DataFrame:
        return frame.groupBy("key").agg(sf.count("*").alias("n"))

    p.sink("ids", "work")
    p.sink("counts", "count")
    return p


def main(folder: Path, servers: str, store: str, how_much: str, settings: dict[str, str]) -> None:
    spark = session("on-store", master="local[4]", short_run=True, settings=settings)
    with Running(declared(servers, store), spark, folder) as running:
        running.set_replicas({"work": 2})
        if how_much == "some":
            with running.accounts.changed:
                while running.accounts.consumed("count") < EVENTS // 4:
                    running.check()
                    running.accounts.changed.wait(0.5)
            os._exit(9)
        running.wait(400)
        ids = sorted(r.id for r in running.read("ids").collect())
        newest: dict[int, int] = {}
        for r in running.read("counts").collect():
            newest[r.key] = max(newest.get(r.key, 0), r.n)
        batches = running.accounts.latest("count").batch
        print(json.dumps({"ids": ids, "counted": sum(newest.values()), "batches": batches}))
    spark.stop()


if __name__ == "__main__":
    folder, servers, store, how_much, settings = sys.argv[1:]
    main(Path(folder), servers, store, how_much, json.loads(settings))
