"""What a grouping is worth on Spark: the sensitive chain of DABS-Storm, the same batches under
every grouping, alternating in one run.

Events name a city, Zipf 1.5; looking a city up waits 10 to 100 ms in steps of 10, by city. Every
micro-batch is one file, so all groupings get the same events in the same batches. A stage lasts as
long as its busiest replica: makespan = the largest busy time of a batch, averaged over the batches
after the first few, in which groupings learn. Targets for osg: makespan at most 0.8 of shuffle's,
busiest replica at most 1.15 times the mean, assigning and learning below 5 % of busy time. Usage:
python benchmarks/balance.py [REPLICAS] [EVENTS PER BATCH] [CITIES] [ROUNDS]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from foretide.spark import Pipeline, Running, session
from foretide.spark.run.accounts import Delivery

BATCHES, SKIPPED, SEED = 16, 4, 7
GROUPINGS = ("shuffle", "load-aware", "osg")
SCHEMA = "id long, city long"


@dataclass(frozen=True)
class Setting:
    replicas: int = 8
    events: int = 80
    cities: int = 10
    rounds: int = 2


def look_up(event: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.010 * (event["city"] % 10 + 1))
    return event


def finish(event: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.002)
    return event


def write_batches(folder: Path, setting: Setting) -> None:
    """One file per micro-batch, in order of their times of change."""
    rng = np.random.default_rng(SEED)
    weights = np.arange(1, setting.cities + 1) ** -1.5
    folder.mkdir()
    for i in range(BATCHES):
        cities = rng.choice(setting.cities, setting.events, p=weights / weights.sum())
        ids = np.arange(i * setting.events, (i + 1) * setting.events)
        pq.write_table(pa.table({"id": ids, "city": cities}), folder / f"{i:03d}.parquet")
        os.utime(folder / f"{i:03d}.parquet", (1.7e9 + i, 1.7e9 + i))


def chain(grouping: str, folder: Path, setting: Setting) -> Pipeline:
    p = Pipeline("sensitive", trigger_s=0.0)
    p.source(
        "source",
        lambda s: s.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder)),
    )
    most = setting.replicas
    p.operator(
        inputs="source",
        name="work",
        cost="city",
        grouping=grouping,
        min_replicas=most,
        max_replicas=most,
    )(look_up)
    p.operator(inputs="work", name="finish")(finish)
    p.sink("out", inputs="finish")
    return p


def measured(spark: SparkSession, p: Pipeline, path: Path) -> tuple[list[Delivery], list[float]]:
    """The warm batches of the sensitive stage, and what their micro-batches took as a whole."""
    with Running(p, spark, path) as running:
        query = running.queries["work"].query
        assert query is not None
        query.processAllAvailable()
        running.wait()
        took_s = [
            b.durationMs["triggerExecution"] / 1e3
            for b in query.recentProgress
            if "addBatch" in b.durationMs
        ]
        batches = [b for b in running.accounts.take()["work"].deliveries if b.reports]
    assert len(batches) == BATCHES
    return batches[SKIPPED:], took_s[SKIPPED:]


def busy_s(batch: Delivery) -> Sequence[float]:
    found = [0.0] * batch.manifest.replicas
    for r in batch.reports:
        found[r.replica] = r.busy_s
    return found


def main() -> None:
    setting = Setting(*[int(a) for a in sys.argv[1:]])
    modules = ("foretide.balance.load_aware", "foretide.balance.osg")
    settings = {"spark.sql.streaming.numRecentProgressUpdates": "1000"}
    spark = session("balance", f"local[{setting.replicas + 4}]", settings=settings, preload=modules)
    found: dict[str, list[Delivery]] = {g: [] for g in GROUPINGS}
    took_s: dict[str, list[float]] = {g: [] for g in GROUPINGS}
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        write_batches(root / "input", setting)
        for r in range(setting.rounds):
            for g in GROUPINGS[r % 3 :] + GROUPINGS[: r % 3]:
                batches, took = measured(
                    spark, chain(g, root / "input", setting), root / f"{g}-{r}"
                )
                found[g] += batches
                took_s[g] += took
    spark.stop()

    def mean(grouping: str, figure: Callable[[Sequence[float]], float]) -> float:
        return float(np.mean([figure(busy_s(b)) for b in found[grouping]]))

    print(
        f"{setting.replicas} replicas, {setting.events} events per batch, {setting.cities} cities "
        "(Zipf 1.5), "
        f"{setting.rounds} x {BATCHES - SKIPPED} batches each; load average "
        f"{os.getloadavg()[0]:.1f}"
    )
    print("grouping     makespan  / shuffle   max / mean   grouping / busy   micro-batch")
    base = mean("shuffle", max)
    for g in GROUPINGS:
        spent = sum(b.grouping_s for b in found[g]) / sum(sum(busy_s(b)) for b in found[g])
        uneven = mean(g, lambda busy: max(busy) / (sum(busy) / len(busy)))
        print(
            f"{g:11s} {mean(g, max) * 1e3:6.0f} ms {mean(g, max) / base:11.2f} {uneven:12.2f} "
            f"{spent:16.1%}"
            f" {np.median(took_s[g]) * 1e3:10.0f} ms"
        )


if __name__ == "__main__":
    main()
