"""Backlogs of Kafka sources and Kafka edges against what the broker itself holds: in the probe and
on the dashboard's page, while a batch runs and at rest.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from broker import Topics
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession

from foretide.errors import NotReady
from foretide.journal import Run, encode
from foretide.model import Decision, Snapshot
from foretide.spark import Pipeline, Running, kafka
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.probe import PipelineProbe
from foretide.web.lines import DecisionLine, decode
from foretide.web.state import Journalled, RunState

pytestmark = pytest.mark.spark
LIMIT_S = 180.0


def declared(topics: Topics, source: str, gate: Path) -> Pipeline:
    """``second`` stands still until the file ``gate`` is there."""
    p = Pipeline("counted", trigger_s=0.3, edges=kafka(topics.servers))
    p.source("in", kafka(source, topics.servers, schema="id long", starting="earliest"))
    p.operator(inputs="in", name="first", max_replicas=2)(lambda e: e)

    @p.operator(inputs="first", max_replicas=2)
    def second(event: dict[str, Any]) -> dict[str, Any]:
        pause_s = 0.05
        while not gate.exists():
            time.sleep(pause_s)
        return event

    p.sink("out", "second")
    return p


def in_topic(topics: Topics, topic: str) -> int:
    """Events in a topic of an edge: every record says in a header how many it holds."""
    events = 0
    for partition, end in topics.ends(topic).items():
        consumer = topics._consumer()
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30.0)
        consumer.assign([TopicPartition(topic, partition, low)])
        while low < end:
            message: Any = consumer.poll(30.0)
            assert message is not None
            events += int(dict(message.headers())["events"])
            low = message.offset() + 1
        consumer.close()
    return events


def snapshot(probe: PipelineProbe) -> Snapshot:
    """The next window, as soon as there is one."""
    until = time.monotonic() + LIMIT_S
    while True:
        try:
            return probe.read(time.time())
        except NotReady:
            assert time.monotonic() < until


def on_the_page(running: Running, read: Snapshot) -> dict[str, float | None]:
    """Backlogs as the dashboard shows them, from the journal's line of this window."""
    line = decode(encode(Decision(read.at, "observed", "advise", read)))
    assert isinstance(line, DecisionLine)
    state = RunState(Run("counted", "drs", running.topology, 1.0, 0.0))
    state.add(line)
    now = state.now(Journalled(), 1)
    assert now.backlog == sum(o.backlog or 0.0 for o in now.operators.values())
    return {name: o.backlog for name, o in now.operators.items()}


def test_backlogs_are_what_the_broker_holds(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source, gate = topics.create("in", 3), tmp_path / "gate"
    topics.send(source, [json.dumps({"id": i}) for i in range(120)])
    p = declared(topics, source, gate)
    with Running(p, spark, tmp_path / "run") as running:
        probe = PipelineProbe(running, ExecutorPool(spark))
        until = time.monotonic() + LIMIT_S
        with running.accounts.changed:
            while running.accounts.consumed("first") < 120:
                running.check()
                assert time.monotonic() < until
                running.accounts.changed.wait(0.5)
        edge = running.queries["first"].outbox._topic("to.second")  # type: ignore[attr-defined]
        held = in_topic(topics, edge)
        assert held == 120  # all of it waits, or is in the batch that stands still
        waiting = {"first": sum(topics.ends(source).values()) - 120, "second": held}
        read = snapshot(probe)
        assert {n: s.backlog for n, s in read.samples.items()} == waiting
        assert on_the_page(running, read) == waiting
        gate.touch()
        running.wait(LIMIT_S)
        read = snapshot(probe)
        assert sum(topics.ends(source).values()) == running.accounts.consumed("first")
        assert on_the_page(running, read) == {"first": 0.0, "second": 0.0}
        assert {n: s.backlog for n, s in read.samples.items()} == {"first": 0.0, "second": 0.0}
        out = sorted(r.id for r in running.read("out").collect())
    assert out == list(range(120))
