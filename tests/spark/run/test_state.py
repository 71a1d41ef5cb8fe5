"""A stateful operator keeps its totals while its replicas change."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running
from foretide.spark.edge.checkpoint import Checkpoint

pytestmark = pytest.mark.spark


PACED = {"totals": 60}
"""Events per batch: enough batches for every number of replicas, however fast or slow they are."""


def until(running: Running, test: Callable[[], bool]) -> None:
    with running.accounts.changed:
        while not test():
            running.check()
            assert running.accounts.changed.wait(120), "no batch came"


def newer(running: Running, seen: int) -> bool:
    return running.accounts.latest("totals").batch > seen


def ran_on(running: Running, replicas: int) -> bool:
    return running.accounts.latest("totals").replicas == replicas


def test_windowed_counts_are_right_while_replicas_go_from_1_to_4_to_2_and_after_a_crash(
    spark: SparkSession, tmp_path: Path
) -> None:
    with Running(counting(900), spark, tmp_path, batch_limits=PACED) as running:
        assert running.topology["totals"].stateful
        for replicas in (4, 2):
            seen = running.accounts.latest("totals").batch
            until(running, partial(newer, running, seen))
            running.set_replicas({"totals": replicas})
            until(running, partial(ran_on, running, replicas))
        running.wait()
        used = {b.manifest.replicas for b in running.accounts.take()["totals"].deliveries}
        assert used == {1, 4, 2}
        assert found(running) == dict.fromkeys(range(0, 90, 10), 100)
        assert running.queries["ingest"].kept_state() is None
        state = running.queries["totals"].kept_state()
        assert state is not None
        assert state.rows >= 3, "a window that is still open, for three keys"
        assert state.bytes > 0
        assert state.watermark_at is not None
        assert 0 < state.watermark_at <= 90, "event time counts from 1970 here"

    # The driver dies after it has delivered the last batch and before Spark has committed it.
    checkpoint = Checkpoint(tmp_path / "checkpoints" / "totals")
    for committed in (f"{checkpoint.last_batch()}", f".{checkpoint.last_batch()}.crc"):
        (checkpoint.root / "commits" / committed).unlink(missing_ok=True)
    with Running(counting(1000), spark, tmp_path, batch_limits=PACED) as running:
        running.wait()
        assert found(running) == dict.fromkeys(range(0, 100, 10), 100)


def found(running: Running) -> dict[int, int]:
    """Events by window, from the newest count of each window and key."""
    rows = running.read("counts").groupBy("start", "key").agg(sf.max("n").alias("n")).collect()
    return {
        start: sum(r["n"] for r in rows if r["start"] == start)
        for start in {r["start"] for r in rows}
    }


def counting(events: int) -> Pipeline:
    p = Pipeline("stateful", trigger_s=0.2)
    p.source(
        "events", Generator(Load("burst", np.array([float(events)]), 0.01), max_events_per_batch=60)
    )
    p.operator(inputs="events", name="ingest", schema="id long, key long")(
        lambda e: {"id": e["id"], "key": e["key"] % 3}
    )

    @p.frame(inputs="ingest", max_replicas=4, output_mode="update")
    def totals(frame: DataFrame) -> DataFrame:
        timed = frame.withColumn("time", sf.timestamp_seconds(sf.floor(sf.col("id") / 10)))
        windows = timed.withWatermark("time", "5 seconds").groupBy(
            sf.window("time", "10 seconds"), "key"
        )
        return windows.agg(sf.count("*").alias("n"), sf.max("_at").alias("_at")).select(
            sf.col("window.start").cast("long").alias("start"), "key", "n", "_at"
        )

    p.sink("counts", inputs="totals")
    return p
