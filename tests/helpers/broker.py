"""One Kafka broker for all tests of a run, topics of each test's own, and what is in them.

Without the jars (``scripts/ensure-kafka``) the tests that need a broker are skipped; in CI they
fail.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from foretide.demo.broker import Broker, jars

TIMEOUT_S = 30.0


def connector() -> str:
    """Spark's Kafka connector and Avro jars as a value of ``spark.jars``; empty without them."""
    return ",".join(map(str, jars("spark")))


def started_broker(folder: Path) -> Broker:
    """A broker that runs, or a skip (a failure in CI) where its jars are missing."""
    if not jars("broker") or not jars("spark"):
        sentence = "no Kafka jars in the cache folder: run scripts/ensure-kafka"
        if os.environ.get("CI"):
            pytest.fail(sentence)
        pytest.skip(sentence)
    broker = Broker(folder)
    broker.start()
    return broker


class Topics:
    """Makes topics on one broker, fills them and reads them whole."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})

    def create(
        self, name: str = "t", partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        """A new topic with a name of its own; the name. It keeps records of any timestamp: the
        broker looks for those older than a week within a second of its start.
        """
        topic = f"{name}-{uuid4().hex[:8]}"
        kept = {"retention.ms": "-1", **(config or {})}
        made = self.admin.create_topics([NewTopic(topic, partitions, 1, config=kept)])
        made[topic].result(TIMEOUT_S)
        return topic

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(TIMEOUT_S)

    def send(
        self,
        topic: str,
        values: Iterable[bytes | str],
        partition: int = -1,
        timestamp_ms: int = 0,
        key: bytes | None = None,
    ) -> None:
        """Records with these values, all delivered when this returns."""
        failures: list[object] = []
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5, "log_level": 0})
        for value in values:
            producer.produce(
                topic,
                value,
                key=key,
                partition=partition,
                timestamp=timestamp_ms,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
            producer.poll(0)
        assert producer.flush(TIMEOUT_S) == 0
        assert not failures, failures[0]

    def ends(self, topic: str) -> dict[int, int]:
        """The broker's own end offset of every partition."""
        consumer = self._consumer()
        try:
            partitions = consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions
            return {
                p: consumer.get_watermark_offsets(TopicPartition(topic, p), TIMEOUT_S)[1]
                for p in partitions
            }
        finally:
            consumer.close()

    def read(self, topic: str) -> list[bytes]:
        """The values of every record in a topic, partition by partition."""
        return [value for value, _ in self.records(topic)]

    def records(self, topic: str) -> list[tuple[bytes, dict[str, str]]]:
        """Values and headers of every record in a topic, partition by partition."""
        ends = self.ends(topic)
        consumer = self._consumer()
        try:
            found: list[tuple[bytes, dict[str, str]]] = []
            for partition, end in ends.items():
                low, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT_S)
                consumer.assign([TopicPartition(topic, partition, low)])
                while low < end:
                    message: Any = consumer.poll(TIMEOUT_S)
                    assert message is not None, f"{topic}-{partition} ends at {low}, not at {end}"
                    if message.error():
                        raise KafkaException(message.error())
                    low = message.offset() + 1
                    headers = {k: str(v, "utf-8") for k, v in message.headers() or ()}
                    found.append((message.value() or b"", headers))
            return found
        finally:
            consumer.close()

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "foretide-tests",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
