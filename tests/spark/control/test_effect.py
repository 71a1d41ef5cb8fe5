"""Replicas that wait for one lock, on Spark: the loop measures that more of them add nothing."""

import fcntl
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from foretide.load import Load
from foretide.spark import Generator, Pipeline
from foretide.spark.control.live import LiveRun
from foretide.systems import system

SECONDS, WRITE_S, MOST = 120, 0.02, 8
RISING = np.concatenate([np.linspace(20, 70, 60), np.full(SECONDS - 60, 70.0)])
SENTENCES = ("something they share is full", "measured throughput adds nothing")


def locked_store(lock: Path) -> Pipeline:
    """One operator that writes each event under a lock on one file: 50 events/s at most, however
    many replicas there are.
    """
    p = Pipeline("locked", trigger_s=1.0)
    p.source("events", Generator(Load("rising", RISING)))
    path = str(lock)

    @p.operator(inputs="events", name="store", max_replicas=MOST)
    def store(event: dict[str, Any]) -> dict[str, Any]:
        with open(path, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(WRITE_S)
        return event

    p.sink("out", inputs="store")
    return p


@pytest.mark.spark
@pytest.mark.long
def test_replicas_behind_one_lock_are_not_kept(spark: SparkSession, tmp_path: Path) -> None:
    run = LiveRun(
        locked_store(tmp_path / "lock"),
        system("foretide"),
        tmp_path / "run",
        "act",
        window_s=2.0,
        target_latency_s=5.0,
        short_run=True,
    )
    _, decisions = run.go(steps=SECONDS // 2, spark=spark)
    assert [d.error for d in decisions if d.outcome == "failed"] == []
    reasons = [d.plan.reasons["store"] for d in decisions if d.plan]
    full = [i for i, r in enumerate(reasons) if any(text in r for text in SENTENCES)]
    assert full, reasons
    asked = [d.plan.replicas["store"] for d in decisions if d.plan]
    assert min(asked[full[0] :]) < max(asked), list(zip(asked, reasons, strict=True))
