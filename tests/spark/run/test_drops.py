"""A timeout and a queue limit on real Spark: what is dropped is a dead letter and is counted."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from foretide.spark import Pipeline, Running

pytestmark = pytest.mark.spark

LINES = 200
HOUR_S = 3600.0


def two_steps(source: Path, **settings: Any) -> Pipeline:
    p = Pipeline("drops", trigger_s=0.5, **settings)
    p.source(
        "lines",
        lambda s: s.readStream.schema("id long, at double").json(str(source)),
        stamp="at",
    )

    @p.operator(inputs="lines", schema="id long")
    def parse(event: dict[str, Any]) -> dict[str, Any]:
        return {"id": event["id"]}

    p.operator(inputs="parse", name="keep")(lambda e: e)
    p.sink("out", inputs="keep")
    return p


def written(folder: Path, stamps: list[float]) -> Path:
    folder.mkdir()
    lines = (f'{{"id": {i}, "at": {at}}}' for i, at in enumerate(stamps))
    (folder / "a.json").write_text("\n".join(lines))
    return folder


def test_events_older_than_the_timeout_are_dropped_and_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    now = time.time()
    stamps = [now + (HOUR_S if i % 2 else -HOUR_S) for i in range(LINES)]
    source = written(tmp_path / "in", stamps)
    with Running(two_steps(source, timeout_s=30.0), spark, tmp_path / "run") as running:
        running.wait(120)
        dead = running.read("dead:parse").collect()
        out = running.read("out").collect()
        assert sorted(r["id"] for r in out) == list(range(1, LINES, 2))
        assert len(dead) == LINES // 2
        assert {r["_error"] for r in dead} == {"Dropped: older than 30 s"}
        assert running.accounts.consumed("parse") == LINES
        window = running.accounts.take()["parse"]
    assert (window.processed, window.late, window.diverted) == (LINES // 2,) * 3


def test_a_full_queue_drops_events_and_loses_none_from_the_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = written(tmp_path / "in", [time.time()] * LINES)
    with Running(two_steps(source, queue_limit=50), spark, tmp_path / "run") as running:
        running.wait(120)
        dead = running.read("dead:parse").count() + running.read("dead:keep").count()
        out = running.read("out").count()
        assert running.backlog("parse") == running.backlog("keep") == 0
    assert out + dead == LINES
    assert 0 < dead <= LINES - 50
