"""A pipeline to be killed, for benchmarks/chaos.py: a split that is different at every replay, a
loop with dead letters, state, record batches, and a writer to SQLite.

It starts Spark, prints ``ready`` and waits for a line; then it runs the pipeline to its end, checks
what came out and prints the verdict as one JSON line. Usage: python benchmarks/_victim.py FOLDER
EVENTS DURABILITY
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running, session

PER_BATCH = 20


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


def declared(folder: Path, events: int, durability: Any, edges: Any = None) -> Pipeline:
    more = {} if edges is None else {"edges": edges}
    p = Pipeline("victim", trigger_s=0.1, durability=durability, **more)
    burst = Load("burst", np.array([float(events)]), 0.01)
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
    p.sink("db", inputs="last", write=writer(folder / "sink.db"))
    p.sink("last_ids", inputs="last")
    return p


def verdict(running: Running, folder: Path, events: int) -> dict[str, Any]:
    """Events lost and doubled, over three ways out of the graph; the state; the writer."""

    def ids(sink: str) -> list[int]:
        return [r["id"] for r in running.read(sink).select("id").collect()]

    right = ids("right_ids")
    dead = [json.loads(r[0])["id"] for r in running.read("dead:loop").select("_event").collect()]
    db = sqlite3.connect(folder / "sink.db")
    stored = [i for (i,) in db.execute("select id from events")]
    digests: dict[int, set[str]] = {}
    for batch, digest in db.execute("select batch, digest from seen"):
        digests.setdefault(batch, set()).add(digest)
    lost = doubled = 0
    for other in (stored, ids("left_done"), ids("last_ids")):
        counts = Counter(other + right + dead)
        lost += len(set(range(events)) - set(counts))
        doubled += sum(n - 1 for n in counts.values())
    final: dict[int, tuple[int, int]] = {}
    for row in running.read("counts").collect():  # later updates of a bucket count more events
        final[row["bucket"]] = max(final.get(row["bucket"], (0, 0)), (row["n"], row["total"]))
    want = {b: (n, 0) for b, n in Counter(i % 7 for i in right).items()}
    want = {b: (n, sum(i for i in right if i % 7 == b)) for b, (n, _) in want.items()}
    return {
        "events": events,
        "lost": lost,
        "doubled": doubled,
        "state": final == want,
        "writer": all(len(d) == 1 for d in digests.values()),
        "backlog": sum(running.backlog(n) for n in running.topology.names),
    }


def main() -> None:
    folder, events, durability = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    spark = session("victim", master="local[4]", short_run=True)
    spark.range(1).mapInArrow(lambda batches: batches, "id long").collect()  # loads the workers
    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    try:
        with Running(declared(folder, events, durability), spark, folder / "pipeline") as running:
            print("started", flush=True)
            running.set_replicas({"split": 2, "loop": 2})
            running.wait(1200.0)
            print(json.dumps(verdict(running, folder, events)), flush=True)
    except Exception as error:
        print(json.dumps({"failed": f"{type(error).__name__}: {error}"[:600]}), flush=True)
        os._exit(3)
    spark.stop()


if __name__ == "__main__":
    main()
