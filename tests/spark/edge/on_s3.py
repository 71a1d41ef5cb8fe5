"""A pipeline with Kafka edges and everything it keeps in an S3 bucket, as a process of its own: it
runs some of the load and ends as a crash would, or runs to the end and prints what came out.

Usage: on_s3.py FOLDER SERVERS ENDPOINT some|all
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
SDK = "2.35.4"
PACKAGES = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    *(f"software.amazon.awssdk:{part}:{SDK}" for part in ("s3", "s3-transfer-manager", "sts")),
)


def declared(servers: str) -> Pipeline:
    p = Pipeline("on_s3", trigger_s=0.3, edges=kafka(servers), store="s3a://kept/clicks")
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


def main(folder: Path, servers: str, endpoint: str, how_much: str) -> None:
    settings = {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.jars.excludes": "software.amazon.awssdk:bundle",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.change.detection.mode": "none",
    }
    spark = session("on-s3", master="local[4]", short_run=True, settings=settings)
    with Running(declared(servers), spark, folder) as running:
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
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4])
