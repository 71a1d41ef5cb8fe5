"""A grouping of a user's own on real Spark: registered, used by name, and given its reports."""

from pathlib import Path
from typing import Any

import lopsided
import numpy as np
import pyspark.cloudpickle
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running

pytestmark = pytest.mark.spark


def pipeline() -> Pipeline:
    p = Pipeline("p", trigger_s=0.1)
    p.source("events", Generator(Load("burst", np.array([400.0]), 0.01), max_events_per_batch=400))

    @p.operator(
        inputs="events", schema="id long, replica int", grouping="lopsided",
        min_replicas=3, max_replicas=3,
    )  # fmt: skip
    def work(event: dict[str, Any]) -> dict[str, Any]:
        context = TaskContext.get()
        assert context is not None
        return {"id": event["id"], "replica": context.partitionId()}

    p.sink("out", inputs="work")
    return p


def test_a_registered_grouping_assigns_the_events_and_learns(
    spark: SparkSession, tmp_path: Path
) -> None:
    pyspark.cloudpickle.register_pickle_by_value(lopsided)  # type: ignore[no-untyped-call]
    with lopsided.registered(), Running(pipeline(), spark, tmp_path) as running:
        running.wait()
        rows = running.read("out").collect()
        grouping = running.queries["work"].grouping
    assert sorted(r["id"] for r in rows) == list(range(400))
    counts = np.bincount([r["replica"] for r in rows], minlength=3)
    assert counts == pytest.approx([300, 0, 100], abs=16), "each of 16 tasks begins its own round"
    assert isinstance(grouping, lopsided.Lopsided)
    assert np.sum(grouping.processed, axis=0).tolist() == counts.tolist()
