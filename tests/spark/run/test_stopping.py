"""A stop waits for batches in flight, holds back new ones, and ends queries without an error;
nothing is lost either way.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running
from foretide.spark.run import running as runs

pytestmark = pytest.mark.spark
EVENTS = 1000


def chain(per_batch: int, wait_s: float) -> Pipeline:
    p = Pipeline("slow", trigger_s=0.1)
    p.source(
        "events",
        Generator(Load("burst", np.array([float(EVENTS)]), 0.01), max_events_per_batch=per_batch),
    )

    @p.operator(inputs="events", schema="id long")
    def wait(event: dict[str, Any]) -> dict[str, Any]:
        time.sleep(wait_s)
        return {"id": event["id"]}

    p.operator(inputs="wait", name="last", schema="id long")(lambda e: e)
    p.sink("out", inputs="last")
    return p


def stopped_at_work(spark: SparkSession, path: Path) -> int:
    """Stop a pipeline whose first operator is always at work, just after a batch began; how many
    events the stop let pass.
    """
    with Running(chain(10, 0.05), spark, path) as started:
        while (
            not started.accounts.consumed("wait") or started.queries["wait"].in_flight is not None
        ):
            started.check()
            time.sleep(0.002)
        while started.queries["wait"].in_flight is None:  # the next batch has just begun
            started.check()
            time.sleep(0.002)
        before = started.accounts.consumed("wait")
    assert [q.query.exception() for q in started.queries.values() if q.query is not None] == [
        None,
        None,
    ]
    return started.accounts.consumed("wait") - before


def test_a_stop_comes_between_batches_or_cuts_one_off_and_loses_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stopped_at_work(spark, tmp_path) == 10, (
        "the batch in flight came to its end, the next one was held back"
    )
    monkeypatch.setattr(runs, "GRACE_S", 0.0)
    assert stopped_at_work(spark, tmp_path) <= 10
    with Running(chain(EVENTS, 0.0), spark, tmp_path) as last:
        last.wait()
        assert sorted(r["id"] for r in last.read("out").collect()) == list(range(EVENTS))
