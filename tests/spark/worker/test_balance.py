"""Groupings on real Spark: replicas that change under them, keys that stay together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark import TaskContext
from pyspark.accumulators import _accumulatorRegistry
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from foretide.balance.key_hash import KeyHash
from foretide.balance.osg import OnlineShuffle
from foretide.balance.shuffle import Shuffle
from foretide.errors import InvalidConfig
from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running
from foretide.spark.run.accounts import Delivery
from foretide.spark.worker.partitioning import spread

pytestmark = pytest.mark.spark

PER_BATCH = 40


def started(
    p: Pipeline, spark: SparkSession, path: Path, counts: Sequence[int], grouping: str
) -> Running:
    """Sets the next number of replicas in ``counts`` after every delivered batch."""

    def change(running: Running, name: str, delivery: Delivery) -> None:
        at = min(delivery.manifest.batch + 1, len(counts) - 1)
        running.set_replicas({name: counts[at]})

    return Running(p, spark, path, grouping=grouping, on_delivery=change)


def pipeline(batches: int, **settings: Any) -> Pipeline:
    """All events are due at once, every batch takes 40; the operator gives each event with the
    replica that had it.
    """
    p = Pipeline("p", trigger_s=0.1)
    load = Load("burst", np.array([float(batches * PER_BATCH)]), 0.01)
    p.source("events", Generator(load, keys=10, skew=1.5, max_events_per_batch=PER_BATCH))

    @p.operator(inputs="events", schema="id long, key long, replica int", **settings)
    def work(event: dict[str, Any]) -> dict[str, Any]:
        context = TaskContext.get()
        assert context is not None
        return {"id": event["id"], "key": event["key"], "replica": context.partitionId()}

    p.sink("out", inputs="work")
    return p


def test_osg_loses_nothing_and_keeps_its_estimates_from_2_to_8_to_3_replicas(
    spark: SparkSession, tmp_path: Path
) -> None:
    counts = [2, 2, 2, 8, 8, 3, 3]
    p = pipeline(len(counts), cost="key", min_replicas=2, max_replicas=8)
    known = len(_accumulatorRegistry)
    with started(p, spark, tmp_path, counts, "osg") as running:
        running.wait()
        rows = running.read("out").collect()
        batches = [b for b in running.accounts.take()["work"].deliveries if b.events]
        grouping = running.queries["work"].grouping
    assert sorted(r["id"] for r in rows) == list(range(len(counts) * PER_BATCH))
    assert [b.manifest.replicas for b in batches] == counts
    for b, replicas in zip(batches, counts, strict=True):
        assert sum(r.processed for r in b.reports) == PER_BATCH
        assert max(r.replica for r in b.reports) < replicas
        assert sum(r.sampled for r in b.reports) == PER_BATCH
        assert b.grouping_s > 0
    expected_s = [sum(r.expected_s for r in b.reports) for b in batches]
    assert expected_s[0] == 0.0, "nothing was known before the first batch came back"
    assert all(e > 0 for e in expected_s[1:]), (
        "also the first batch at a new count goes by what was learned"
    )
    assert isinstance(grouping, OnlineShuffle)
    assert len(grouping.correction_s) == 3
    assert len(_accumulatorRegistry) == known + 2, (
        "PySpark keeps accumulators for ever: none may come with a batch"
    )
    assert grouping.sketch.events == pytest.approx(
        PER_BATCH * sum(0.5**i for i in range(len(counts)))
    )


def test_keyed_operators_keep_keys_together_at_any_replica_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    counts = [1, 2, 5, 3]
    p = pipeline(len(counts), key="key", max_replicas=5)
    with started(p, spark, tmp_path, counts, "osg") as running:
        running.wait()
        rows = running.read("out").collect()
        batches = [b for b in running.accounts.take()["work"].deliveries if b.events]
        assert isinstance(running.queries["work"].grouping, KeyHash)
    assert sorted(r["id"] for r in rows) == list(range(len(counts) * PER_BATCH))
    assert [b.manifest.replicas for b in batches] == counts
    for i, replicas in enumerate(counts):
        seen = {(r["key"], r["replica"]) for r in rows if r["id"] // PER_BATCH == i}
        assert len({key for key, _ in seen}) == len(seen), f"a key met two of {replicas} replicas"
        assert all(replica < replicas for _, replica in seen)


@pytest.mark.parametrize("replicas", [3, 8])
def test_many_small_tasks_deal_their_events_to_all_replicas(
    spark: SparkSession, replicas: int
) -> None:
    dealt = spread(spark.range(0, 500, 1, 100), Shuffle(), replicas).select(
        sf.spark_partition_id().alias("replica")
    )
    counts = sorted(r["count"] for r in dealt.groupBy("replica").count().collect())
    assert len(counts) == replicas
    assert counts[-1] - counts[0] <= 5


def test_a_cost_column_must_exist(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidConfig, match="cost column 'city' is not among its input's: id, at, key, value"
    ):
        Running(pipeline(1, cost="city"), spark, tmp_path)
