"""Described apps on Spark: events go where the description sends them, as often as it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from foretide.apps import APPS, App, Service, app
from foretide.cli import app as cli
from foretide.journal import read
from foretide.load import Load, load
from foretide.spark import Running
from foretide.spark.control.live import LiveRun
from foretide.spark.declare.described import described

EVENTS = 600


def quick(described_app: App, timeout_s: float | None = None) -> App:
    """The app with service times of a tenth of a millisecond."""
    service = dict.fromkeys(described_app.service, Service(1e-4))
    return replace(described_app, service=service, timeout_s=timeout_s)


@pytest.mark.parametrize("name", APPS)
def test_every_app_becomes_a_pipeline_with_its_topology(name: str) -> None:
    wanted = app(name)
    topology = described(wanted, load(wanted.load)).topology()
    assert topology.names == wanted.topology.names
    assert set(topology.edges) == set(wanted.topology.edges)
    assert topology.sources == wanted.topology.sources


@pytest.mark.spark
@pytest.mark.parametrize("name", ["two-paths", "loop-back"])
def test_visits_are_the_description_s(spark: SparkSession, tmp_path: Path, name: str) -> None:
    wanted = quick(app(name))
    burst = Load("burst", np.array([float(EVENTS)]), 1.0)
    pipeline = described(wanted, burst)
    pipeline.sample_every = 1
    with Running(pipeline, spark, tmp_path) as running:
        running.wait(120)
        came = {n: running.accounts.consumed(n) for n in wanted.topology.names}
        assert running.trees is not None
        completed = running.trees.take()
    assert completed is not None
    assert completed.count == EVENTS, "every input is completed once, whatever came of it"
    for operator, visits in wanted.visits().items():
        deviation = np.sqrt(EVENTS * visits)
        assert abs(came[operator] - EVENTS * visits) < 4 * deviation
    assert came["first"] >= EVENTS


@pytest.mark.spark
def test_events_older_than_the_timeout_are_dead_letters(
    spark: SparkSession, tmp_path: Path
) -> None:
    wanted = quick(app("chain"), timeout_s=1e-3)
    burst = Load("burst", np.array([50.0]), 0.01)
    with Running(described(wanted, burst), spark, tmp_path) as running:
        running.wait(120)
        dead = running.read("dead:first").collect()
    assert len(dead) == 50
    assert dead[0]["_error"] == "Dropped: older than 0.001 s"


@pytest.mark.spark
def test_the_command_runs_an_app_live_until_its_load_is_done(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = LiveRun.go

    def to_the_end(live: LiveRun, *arguments: Any, **options: Any) -> Any:
        return go(replace(live, until_idle=True), *arguments, **{**options, "spark": spark})

    monkeypatch.setattr(LiveRun, "go", to_the_end)
    (tmp_path / "steps.csv").write_text("timestamp,rate\n0,15\n1,15\n2,15\n3,15\n")
    options = {
        "--app": "chain",
        "--load": str(tmp_path / "steps.csv"),
        "--system": "drs",
        "--mode": "act",
        "--target": "9",
        "--window": "1",
        "--folder": str(tmp_path / "run"),
    }
    result = CliRunner().invoke(cli, ["run", *(word for pair in options.items() for word in pair)])
    assert result.exit_code == 0, result.output
    run, decisions = read(tmp_path / "run" / "journal.jsonl")
    assert (run.name, run.system, run.topology.names) == ("chain", "drs", ("first", "second"))
    snapshots = [d.snapshot for d in decisions if d.snapshot is not None]
    for operator in run.topology.names:  # the first window measures nothing yet
        assert sum(s.samples[operator].processed for s in snapshots) <= 60
        # what ended between the last measuring but one and its question is processed in the last
        assert snapshots[-1].samples[operator].backlog == 0
    held = spark.read.parquet(str(tmp_path / "run" / "output" / "out-second"))
    assert sorted(row["id"] for row in held.select("id").collect()) == list(range(60))
