"""Probe and Actuator of a pipeline on real Spark pass the suite of every environment."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from environments import EVERY_CHECK, Harness, check_events_are_neither_lost_nor_invented
from pyspark.sql import SparkSession

from foretide.errors import NotReady
from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running
from foretide.spark.control.actuator import PipelineActuator
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.probe import PipelineProbe

pytestmark = pytest.mark.spark
QUIET_S = 30


class OnSpark:
    """A chain of two operators that takes in a burst of 200 events."""

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


def pipeline(load: Load) -> Pipeline:
    p = Pipeline("p", trigger_s=0.1)
    p.source("events", Generator(load))

    @p.operator(inputs="events", schema="id long", max_replicas=4)
    def first(event: dict[str, Any]) -> dict[str, Any]:
        return {"id": event["id"]}

    @p.operator(inputs="first", schema="id long", max_replicas=4)
    def second(event: dict[str, Any]) -> dict[str, Any]:
        return event

    p.sink("out", inputs="second")
    return p


@EVERY_CHECK
def test_environment(spark: SparkSession, tmp_path: Path, check: Callable[[Harness], None]) -> None:
    """Where events are counted the burst comes after the first read, which starts the counting."""
    counted = check is check_events_are_neither_lost_nor_invented
    load = Load("burst", np.append(np.zeros(QUIET_S if counted else 0), 200.0))
    with Running(pipeline(load), spark, tmp_path) as running:
        check(OnSpark(running))
