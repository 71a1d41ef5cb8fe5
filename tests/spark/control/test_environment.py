"""Probe and Actuator of a pipeline on real Spark pass the suite of every environment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from environments import EVERY_CHECK, Harness
from pyspark.sql import SparkSession

from foretide.errors import NotReady
from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running
from foretide.spark.control.actuator import PipelineActuator
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.probe import PipelineProbe

pytestmark = pytest.mark.spark


class OnSpark:
    """A chain of two operators that has taken in a burst of 200 events."""

    def __init__(self, running: Running) -> None:
        self.running = running
        executors = ExecutorPool(running.spark)
        self.probe = PipelineProbe(running, executors)
        self.actuator = PipelineActuator(running, executors)
        with pytest.raises(NotReady):
            self.probe.read(time.time())

    def next_window(self) -> float:
        self.running.wait()
        return time.time()


@pytest.fixture
def on_spark(spark: SparkSession, tmp_path: Path) -> Iterator[OnSpark]:
    p = Pipeline("p", trigger_s=0.1)
    p.source("events", Generator(Load("burst", np.array([200.0]), 0.01)))

    @p.operator(inputs="events", schema="id long", max_replicas=4)
    def first(event: dict[str, Any]) -> dict[str, Any]:
        return {"id": event["id"]}

    @p.operator(inputs="first", schema="id long", max_replicas=4)
    def second(event: dict[str, Any]) -> dict[str, Any]:
        return event

    p.sink("out", inputs="second")
    with Running(p, spark, tmp_path) as running:
        yield OnSpark(running)


@EVERY_CHECK
def test_environment(on_spark: OnSpark, check: Callable[[Harness], None]) -> None:
    check(on_spark)
