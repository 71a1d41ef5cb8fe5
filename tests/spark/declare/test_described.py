"""Described apps on Spark: events go where the description sends them, as often as it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from foretide.apps import APPS, App, Service, app
from foretide.load import Load, load
from foretide.spark import Running
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
    with Running(described(wanted, burst), spark, tmp_path) as running:
        running.wait(120)
        came = {n: running.accounts.consumed(n) for n in wanted.topology.names}
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
    assert "TooOld" in dead[0]["_error"]
