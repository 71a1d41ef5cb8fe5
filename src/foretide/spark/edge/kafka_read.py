"""What tasks do to read an edge's Kafka topics. A reader takes exactly the records that a manifest
names: whatever else is in the topic (a batch written twice, a task that lost a race or outlived its
driver) is never read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from foretide.errors import PipelineFailed
from foretide.spark.edge.kafka_records import Config, Slice, client, failed, gone, with_options
from foretide.spark.worker.work import MARK

FIRST_S = 60.0
"""How long a record that a manifest names may take to arrive before the broker is asked about it.
"""


def read_slices(config: Config, slices: Sequence[Slice], schema: pa.Schema) -> Iterator[Any]:
    """The events of some slices, in order of topic, partition and offset."""
    wanted: dict[tuple[str, int], dict[int, list[Slice]]] = {}
    for s in slices:
        offsets = wanted.setdefault((s.topic, s.place.partition), {})
        offsets.setdefault(s.place.offset, []).append(s)
    consumer = _consumer(config)
    consumer.assign([TopicPartition(t, p, min(found)) for (t, p), found in wanted.items()])
    try:
        asked_at = time.monotonic()
        while wanted:
            message: Any = consumer.poll(1.0)
            if message is None:
                if time.monotonic() - asked_at > FIRST_S:
                    _check_there(consumer, wanted)
                    asked_at = time.monotonic()
                continue
            if message.error():
                if not message.error().retriable() and not _passes(message.error()):
                    raise failed(message.error(), message.topic() or next(iter(wanted))[0])
                continue
            where = message.topic(), message.partition()
            for s in wanted.get(where, {}).pop(message.offset(), ()):
                yield from _decoded(message, s, schema)
            if not wanted.get(where, True):
                del wanted[where]
                consumer.incremental_unassign([TopicPartition(*where)])
            elif where in wanted and message.offset() > min(wanted[where]):
                raise gone(where[0])
    finally:
        consumer.unassign()


def _decoded(message: Any, s: Slice, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    headers = dict(message.headers() or ())
    if headers.get("attempt", b"").decode() != s.place.attempt:
        raise PipelineFailed(
            f"{MARK}record {s.place.offset} of partition {s.place.partition} of topic {s.topic} is "
            f"not the one that was delivered: the topic was made anew or written to by others; "
            f"start "
            f"the pipeline anew in another directory{MARK}"
        )
    with pa.ipc.open_stream(message.value()) as stream:
        table = stream.read_all().slice(s.start, s.end - s.start)
    yield from table.select(schema.names).cast(schema).combine_chunks().to_batches()


def _check_there(consumer: Consumer, wanted: Mapping[tuple[str, int], Mapping[int, Any]]) -> None:
    """Raise when records that a manifest names are no longer in their topic; a broker that does not
    answer is waited for.
    """
    for (topic, partition), offsets in wanted.items():
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 5.0)
        except KafkaException as error:
            if _passes(error.args[0]) or error.args[0].retriable():
                continue
            raise failed(error.args[0], topic) from None
        if min(offsets) < low or max(offsets) >= high:
            raise gone(topic)


def _passes(error: KafkaError) -> bool:
    """Whether a failure is about reaching a broker, which may come back."""
    return error.code() in (
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._PARTITION_EOF,
    )


def _consumer(config: Config) -> Consumer:
    more = {
        "group.id": "foretide-edges",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "auto.offset.reset": "error",
        "queued.min.messages": "32",
        "fetch.queue.backoff.ms": "10",
        # What is read is there: a fetch that waits for more would hold up the next read of another
        # topic, by half a second.
        "fetch.wait.max.ms": "5",
        "fetch.error.backoff.ms": "100",
        "topic.metadata.propagation.max.ms": "3000",
    }
    consumer: Consumer = client("consumer", with_options(config, more), os.getpid())
    return consumer
