"""A pool of replicas: its executors are there before the replicas are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from scripted_cluster import ScriptedCluster

from foretide.errors import InvalidConfig
from foretide.model import Plan
from foretide.spark.control.actuator import PipelineActuator
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.run.running import Running
from foretide.topology import Operator, Topology

TWO = Topology((Operator("a"), Operator("b", ("a",))))


def running(saved: dict[str, int]) -> Running:
    replicas = {"a": 1, "b": 1, **saved}
    folder = SimpleNamespace(saved_replicas=lambda: saved)
    stub: Any = SimpleNamespace(
        topology=TWO, replicas=replicas, folder=folder, set_replicas=replicas.update
    )
    return cast(Running, stub)


def test_the_pool_s_executors_are_asked_for_at_the_start_and_kept() -> None:
    cluster = ScriptedCluster(executors=1, cores=2)
    actuator = PipelineActuator(
        running({}), ExecutorPool(calls=cluster, now=lambda: cluster.now), pool=4
    )
    actuator.resume()
    assert cluster.asked == [4], "eight slots in executors with two cores each"
    for replicas in (1, 4, 2):
        actuator.apply(Plan({"a": replicas, "b": replicas}))
    assert cluster.asked == [4, 4, 4, 4]
    assert cluster.given_back == []


def test_without_a_pool_executors_follow_the_replicas() -> None:
    cluster = ScriptedCluster(executors=1, cores=2)
    actuator = PipelineActuator(running({}), ExecutorPool(calls=cluster, now=lambda: cluster.now))
    actuator.resume()
    actuator.apply(Plan({"a": 4, "b": 4}))
    actuator.apply(Plan({"a": 1, "b": 1}))
    assert cluster.asked == [4, 1]


def test_no_operator_gets_more_replicas_than_the_pool_has() -> None:
    p = Pipeline("p")
    p.source("events", lambda spark: spark.readStream.format("rate").load())
    p.operator(inputs="events", name="a", schema="value long", max_replicas=32)(lambda e: e)
    p.operator(inputs="a", name="b", max_replicas=2)(lambda e: e)
    p.sink("out", inputs="b")
    p.limit_replicas(4)
    assert {o.name: o.max_replicas for o in p.topology().operators} == {"a": 4, "b": 2}
    p.steps["a"] = type(p.steps["a"])(
        "a", "events", lambda e: e, p.steps["a"].inputs, min_replicas=8
    )
    with pytest.raises(InvalidConfig, match="a pool of 4 is too small"):
        p.limit_replicas(4)


def test_local_mode_says_when_it_has_too_few_slots() -> None:
    cluster = ScriptedCluster(executors=0, cores=2)
    cluster.master = "local[2]"
    with pytest.raises(InvalidConfig, match=r"give --master 'local\[8\]', or a smaller --pool"):
        PipelineActuator(running({}), ExecutorPool(calls=cluster, now=lambda: cluster.now), pool=4)
