"""The broker of the demo and the tests: starts, answers, keeps its records over a crash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from broker import Topics, connector

from foretide.demo.broker import Broker
from foretide.errors import InvalidConfig, PipelineFailed

pytestmark = pytest.mark.spark


def test_records_come_back_in_order_and_offsets_count_them(topics: Topics) -> None:
    topic = topics.create(partitions=2)
    topics.send(topic, [f"{i}" for i in range(100)], partition=1)
    assert topics.read(topic) == [f"{i}".encode() for i in range(100)]
    assert topics.ends(topic) == {0: 0, 1: 100}


def test_the_connector_jars_of_spark_are_in_the_cache(topics: Topics) -> None:
    names = [Path(jar).name for jar in connector().split(",")]
    assert any(name.startswith("spark-sql-kafka-0-10") for name in names)


def test_a_killed_broker_comes_back_on_its_port_with_its_records(own_broker: Broker) -> None:
    topics = Topics(own_broker.servers)
    topic = topics.create()
    topics.send(topic, ["before"])
    pid = own_broker.pid
    own_broker.kill()
    assert own_broker.pid is None
    own_broker.start()
    assert own_broker.pid not in (None, pid)
    assert Topics(own_broker.servers).read(topic) == [b"before"]


def test_a_stopped_broker_leaves_no_process(own_broker: Broker) -> None:
    pid = own_broker.pid
    assert pid is not None
    own_broker.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_missing_jars_are_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(InvalidConfig, match="run scripts/ensure-kafka"):
        Broker(tmp_path).start()


def test_a_broker_that_cannot_start_says_where_to_look(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foretide.demo.broker.PROPERTIES", "process.roles=nothing\n")
    with pytest.raises(PipelineFailed, match=r"did not start: .*broker\.log"):
        Broker(tmp_path).start()
