"""Edges side by side: events per second through one edge, and what a hop adds, directories against
Kafka in one run.

A hop is: tasks write a batch's events, the batch is delivered, the consumer looks for it, reads it
and spreads it over its replicas. Two consumers take turns, as the operators of a pipeline share
their workers, and both kinds of edge take turns in one session, a broker beside; medians over the
rounds without the first ones. Goals at 20,000 events per batch: Kafka has at least 0.8 x the
directory's throughput, and adds at most 150 ms per hop. Usage:
python benchmarks/edges.py [ROUNDS] [EVENTS PER BATCH]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from foretide.balance import GROUPINGS
from foretide.demo.broker import Broker
from foretide.spark import session
from foretide.spark.edge.directory import DirectoryEdges
from foretide.spark.edge.kafka import KafkaEdges
from foretide.spark.edge.protocol import Edges, Manifest, Outlet
from foretide.spark.worker.columns import STAMP
from foretide.spark.worker.partitioning import spread

SKIPPED, TASKS = 3, 2
SCHEMA = f"id long, key long, value double, text string, {STAMP} double"
CONSUMERS = ("b", "c")
COLUMNS = ("id", "key", "value", "text", STAMP)
Starts = dict[str, dict[str, str]]
"""How far each consumer has read."""


def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The operator before the edge: its tasks are Python, as an operator's are."""
    yield from batches


def hop(spark: SparkSession, edges: Edges, batch: int, events: int, starts: Starts) -> float:
    """Seconds that one batch takes over the edge to the consumer whose turn it is."""
    consumer = CONSUMERS[batch % len(CONSUMERS)]
    reader, start = f"to.{consumer}", starts[consumer]
    outlets = {"0": Outlet(COLUMNS, (reader,))}
    frame = spark.range(0, events, 1, TASKS).selectExpr(
        "id", "id % 100 as key", "id * 0.5D as value", "concat('event ', id) as text",
        f"id * 1D as {STAMP}",
    )  # fmt: skip
    schema = StructType.fromDDL(SCHEMA)
    assert isinstance(schema, StructType)
    output, inbox = edges.output("a"), edges.input(consumer, ["a"])
    begun = time.perf_counter()
    staging = output.stage(batch)
    output.write(frame.mapInArrow(work, SCHEMA), outlets, staging, 0)
    files = output.collect(outlets, staging)
    output.deliver(staging, Manifest(batch, time.time(), TASKS, {}, {reader: events}, files))
    end = inbox.advance(start, events)
    pieces = inbox.between(start, end)["a"]
    assert sum(p.events for p in pieces) == events
    taken = inbox.frame(spark, schema, pieces, TASKS)
    placed = spread(taken, GROUPINGS.build("shuffle"), TASKS).mapInArrow(work, SCHEMA)
    placed.write.format("noop").mode("overwrite").save()
    took_s = time.perf_counter() - begun
    inbox.discard(pieces)
    start.update(end)
    return took_s


def measured(
    spark: SparkSession, kinds: dict[str, Edges], rounds: int, events: int
) -> dict[str, float]:
    """Median seconds per hop, by kind of edge."""
    took_s: dict[str, list[float]] = {name: [] for name in kinds}
    starts = {
        name: {c: edges.input(c, ["a"]).start() for c in CONSUMERS} for name, edges in kinds.items()
    }
    for batch in range(rounds + SKIPPED):
        for name, edges in kinds.items():
            took_s[name].append(hop(spark, edges, batch, events, starts[name]))
    return {name: statistics.median(times[SKIPPED:]) for name, times in took_s.items()}


def main(rounds: int = 15, events: int = 20_000) -> None:
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder) / "broker") as broker:
        spark = session("edges", "local[8]", short_run=True, preload=("confluent_kafka",))
        for n in (events, max(1, events // 100)):
            root = Path(folder) / str(n)
            topics = KafkaEdges(root / "kafka", broker.servers, {}, lambda n=n: f"edges-{n}")
            topics.prepare({("a", f"to.{c}"): TASKS for c in CONSUMERS})
            kinds: dict[str, Edges] = {"directory": DirectoryEdges(root / "files"), "Kafka": topics}
            for edges in kinds.values():
                edges.output("a").create()
            hop_s = measured(spark, kinds, rounds, n)
            topics.close()
            for name, s in hop_s.items():
                rate = f"{n / s:>8.0f} events/s, {s * 1e3:.0f} ms per hop"
                print(f"{name:>9}: {n:>6} events per batch: {rate}")
            ratio = hop_s["directory"] / hop_s["Kafka"]
            added_ms = (hop_s["Kafka"] - hop_s["directory"]) * 1e3
            print(f"Kafka / directory: {ratio:.2f} x the throughput, {added_ms:+.0f} ms per hop")
        spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
