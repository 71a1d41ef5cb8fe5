"""What Foretide costs: one operator hand-written in PySpark and as a pipeline, the same work,
alternating in one run.

Both read the same files, one per micro-batch, call the same function for every event in one Python
task, and write parquet exactly once. Throughput is events per second of micro-batch time as Spark
reports it, the first batches of every round left out. The ratio should be at least 0.9. Usage:
python benchmarks/overhead.py [ROUNDS] [EVENTS PER BATCH]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from _processes import cpu_s
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from foretide.spark import Pipeline, Running, session

BATCHES, SKIPPED = 12, 3
SCHEMA = "id long, word string"


def work(event: dict[str, Any]) -> dict[str, Any]:
    """A little of everything: some arithmetic, some text."""
    n = event["id"]
    for _ in range(20):
        n = (n * 1103515245 + 12345) % 2147483648
    return {"id": event["id"], "word": f"{event['word']}-{n}"}


def source(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def by_hand(spark: SparkSession, data: Path, out: Path) -> StreamingQuery:
    """The query a careful PySpark user writes."""
    schema = pa.schema([("id", pa.int64()), ("word", pa.string())])

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pylist([work(e) for e in batch.to_pylist()], schema=schema)

    frame = source(spark, data).mapInArrow(body, SCHEMA)
    return (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(out / "checkpoint"))
        .start(str(out / "data"))
    )


def measured(query: StreamingQuery, events: int) -> tuple[float, float]:
    """(events/s of micro-batch time, CPU seconds per micro-batch) once warm, of a query that has
    all its input waiting.
    """
    before_s, before_batches = cpu_s(), len(query.recentProgress)
    query.processAllAvailable()
    spent_s = cpu_s() - before_s
    took_ms = [
        p.durationMs["triggerExecution"] for p in query.recentProgress if "addBatch" in p.durationMs
    ]
    warm = took_ms[SKIPPED:]
    return events * len(warm) / (sum(warm) / 1e3), spent_s / max(1, len(took_ms) - before_batches)


def main() -> None:
    rounds, events = (
        int(sys.argv[1]) if len(sys.argv) > 1 else 7,
        int(sys.argv[2]) if len(sys.argv) > 2 else 20_000,
    )
    spark = session(
        "overhead", "local[4]", settings={"spark.sql.streaming.numRecentProgressUpdates": "1000"}
    )
    found: dict[str, list[tuple[float, float]]] = {"by hand": [], "foretide": []}
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        for i in range(BATCHES):
            ids = spark.range(i * events, (i + 1) * events)
            ids.selectExpr("id", "concat('w', id % 997) word").coalesce(1).write.mode(
                "append"
            ).parquet(str(root / "input"))
        for r in range(rounds):
            query = by_hand(spark, root / "input", root / f"hand-{r}")
            found["by hand"].append(measured(query, events))
            query.stop()
            p = Pipeline("overhead", trigger_s=0.0)
            p.source("files", lambda s: source(s, root / "input"))
            p.operator(inputs="files", schema=SCHEMA, name="work")(work)
            p.sink("out", inputs="work")
            with Running(p, spark, root / f"foretide-{r}") as running:
                inner = running.queries["work"].query
                assert inner is not None
                found["foretide"].append(measured(inner, events))
    spark.stop()
    rate = {name: statistics.median(f[0] for f in runs) for name, runs in found.items()}
    for name, runs in found.items():
        cpu = statistics.median(f[1] for f in runs)
        each = ", ".join(f"{f[0]:,.0f}" for f in runs)
        print(
            f"{name:9s} {rate[name]:9,.0f} events/s (rounds: {each}); {cpu:.2f} CPU-seconds per "
            f"micro-batch of {events} events"
        )
    print(f"throughput ratio foretide / by hand: {rate['foretide'] / rate['by hand']:.2f}")


if __name__ == "__main__":
    main()
