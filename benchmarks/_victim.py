"""A pipeline to be killed, for benchmarks/chaos.py and power_cut.py: a split that is different at
every replay, a loop with dead letters, state, record batches, and a writer to SQLite.

It runs in two processes, so that one can be killed without the other:
``_victim.py jvm`` starts Spark, prints the address of its gateway as JSON, and stays until its
standard input closes. ``_victim.py drivers`` has everything imported and forks one driver per line
on its standard input: the line is a ``Job`` as JSON, the answer the driver's process id. A driver
connects to a JVM, stops what an earlier driver left there, runs the pipeline to its end, checks
what came out and writes the result to FOLDER/verdict.json.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from py4j.clientserver import ClientServer
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running, kafka, session

PER_BATCH = 20


@dataclass(frozen=True)
class Job:
    """One life of a driver. ``servers`` are those of Kafka edges; empty: directories."""

    folder: str
    events: int
    durability: Literal["process", "power"]
    servers: str
    port: int
    secret: str


def writer(path: Path) -> Any:
    """Keyed by the batch id, in one transaction; a digest of every batch it saw is kept too."""

    def write(frame: DataFrame, batch: int) -> None:
        ids = sorted(r["id"] for r in frame.select("id").collect())
        digest = hashlib.sha256(repr(ids).encode()).hexdigest()
        db = sqlite3.connect(path, timeout=30)
        with db:
            db.execute("create table if not exists seen (batch int, digest text)")
            db.execute("create table if not exists done (batch int primary key)")
            db.execute("create table if not exists events (id int)")
            db.execute("insert into seen values (?, ?)", (batch, digest))
        with db:
            if db.execute("insert or ignore into done values (?)", (batch,)).rowcount:
                db.executemany("insert into events values (?)", [(i,) for i in ids])
        db.close()

    return write


def declared(job: Job) -> Pipeline:
    p = Pipeline(
        "victim",
        trigger_s=0.1,
        durability=job.durability,
        edges=kafka(job.servers) if job.servers else None,
    )
    burst = Load("burst", np.array([float(job.events)]), 0.01)
    p.source("events", Generator(burst, max_events_per_batch=PER_BATCH))
    both = "id long, n int"

    @p.operator(inputs="events", outputs={"left": both, "right": both}, max_replicas=4)
    def split(event: dict[str, Any]) -> Any:
        return ("left" if os.urandom(1)[0] < 128 else "right"), {"id": event["id"], "n": 0}

    @p.operator(
        inputs=["split:left", "loop:again"],
        name="loop",
        on_error="divert",
        max_replicas=4,
        outputs={"again": both, "done": both},
    )
    def loop(event: dict[str, Any]) -> Any:
        if event["id"] % 97 == 5:
            raise ValueError("a bad event")
        again = event["n"] < 4 and os.urandom(1)[0] < 96
        return ("again" if again else "done"), {"id": event["id"], "n": event["n"] + 1}

    @p.frame(inputs="split:right", name="count", output_mode="update", max_replicas=2)
    def count(frame: DataFrame) -> DataFrame:
        buckets = frame.groupBy((sf.col("id") % 7).alias("bucket"))
        return buckets.agg(sf.count("*").alias("n"), sf.sum("id").alias("total"))

    @p.batches(inputs="loop:done", name="last", max_replicas=2)
    def last(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    p.sink("left_done", inputs="loop:done")
    p.sink("right_ids", inputs="split:right")
    p.sink("counts", inputs="count")
    p.sink("db", inputs="last", write=writer(Path(job.folder) / "sink.db"))
    p.sink("last_ids", inputs="last")
    return p


def counts_are_right(running: Running, right: list[int]) -> bool:
    """Whether the state counted every event once."""
    final: dict[int, tuple[int, int]] = {}
    for row in running.read("counts").collect():  # later updates of a bucket count more events
        final[row["bucket"]] = max(final.get(row["bucket"], (0, 0)), (row["n"], row["total"]))
    buckets = {i % 7 for i in right}
    ids = {b: [i for i in right if i % 7 == b] for b in buckets}
    return final == {b: (len(of_bucket), sum(of_bucket)) for b, of_bucket in ids.items()}


def verdict(running: Running, job: Job) -> dict[str, Any]:
    """Events lost and doubled, over three ways out of the graph; the state; the writer."""

    def ids(sink: str) -> list[int]:
        return [r["id"] for r in running.read(sink).select("id").collect()]

    right = ids("right_ids")
    dead = [json.loads(r[0])["id"] for r in running.read("dead:loop").select("_event").collect()]
    db = sqlite3.connect(Path(job.folder) / "sink.db")
    stored = [i for (i,) in db.execute("select id from events")]
    digests: dict[int, set[str]] = {}
    for batch, digest in db.execute("select batch, digest from seen"):
        digests.setdefault(batch, set()).add(digest)
    lost = doubled = 0
    for other in (stored, ids("left_done"), ids("last_ids")):
        counts = Counter(other + right + dead)
        lost += len(set(range(job.events)) - set(counts))
        doubled += sum(n - 1 for n in counts.values())
    return {
        "events": job.events,
        "lost": lost,
        "doubled": doubled,
        "state": counts_are_right(running, right),
        "writer": all(len(d) == 1 for d in digests.values()),
        "backlog": sum(running.backlog(n) for n in running.topology.names),
    }


def attached(job: Job) -> SparkSession:
    """The session of a JVM that an earlier driver may have left in the middle of its batches."""
    os.environ["PYSPARK_GATEWAY_PORT"] = str(job.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = job.secret
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    jvm = gateway.jvm
    java_session = jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
    for query in java_session.streams().active():
        query.stop()
    scala_context = java_session.sparkContext()
    scala_context.cancelAllJobs()
    context = SparkContext(
        gateway=gateway,
        jsc=jvm.JavaSparkContext.fromSparkContext(scala_context),
        conf=SparkConf(_jvm=jvm, _jconf=scala_context.conf()),
    )
    return SparkSession(context, java_session)


def drive(job: Job) -> None:
    folder = Path(job.folder)
    try:
        spark = attached(job)
        with Running(declared(job), spark, folder / "pipeline") as running:
            running.set_replicas({"split": 2, "loop": 2})
            running.wait(1200.0)
            result = verdict(running, job)
    except Exception as error:
        result = {"failed": f"{type(error).__name__}: {error}"[:600]}
    new = folder / "verdict.new"
    new.write_text(json.dumps(result))
    new.rename(folder / "verdict.json")


def fork(job: Job) -> int:
    """A driver in a session of its own; its id."""
    if pid := os.fork():
        return pid
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    with open(Path(job.folder) / "log", "ab") as log, open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    drive(job)
    os._exit(0)


def drivers() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system reaps drivers that ended
    print("ready", flush=True)
    for line in sys.stdin:
        print(fork(Job(**json.loads(line))), flush=True)


def jvm() -> None:
    spark = session("victim", master="local[4]", short_run=True)
    spark.range(1).mapInArrow(lambda batches: batches, "id long").collect()  # loads the workers
    assert isinstance(SparkContext._gateway, ClientServer)
    gateway = SparkContext._gateway.java_parameters
    print(json.dumps({"port": gateway.port, "secret": gateway.auth_token}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    {"jvm": jvm, "drivers": drivers}[sys.argv[1]]()
