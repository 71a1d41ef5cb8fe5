"""What tasks do with an edge's Kafka topics: append a batch's events, read the records they are
given.

A record holds a chunk of events as an Arrow stream, so types are exact and a thousand events cost
one record. Its headers say which producer, batch and task attempt wrote it, and how many events it
holds. A task returns the places of the records it wrote; Spark keeps those of the attempt that
succeeded, and only these are named in the manifest. A reader takes exactly the records a manifest
names: whatever else is in the topic (a batch written twice, a task that lost a race or outlived its
driver) is never read.

Runs in Spark's Python workers, which keep one producer and one consumer each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from foretide.errors import PipelineFailed
from foretide.spark.worker.columns import STAMP, TO
from foretide.spark.worker.stamps import summary
from foretide.spark.worker.tasks import MARK

Body = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
CHUNK_EVENTS = 2048
CHUNK_BYTES = 400_000
"""A chunk's size at most: a broker takes records of 1 MB unless it is configured otherwise."""
FIRST_S = 60.0
"""How long a record that a manifest names may take to arrive before the broker is asked about it.
"""
PLACES = pa.schema(
    [
        ("channel", pa.string()),
        ("topic", pa.string()),
        ("place", pa.string()),
        ("events", pa.int64()),
        ("stamp_sum", pa.float64()),
        ("stamps", pa.binary()),
    ]
)
PLACES_DDL = (
    "channel string, topic string, place string, events long, stamp_sum double, stamps binary"
)
Config = tuple[tuple[str, str], ...]
"""Client options as a hashable value; they hold passwords and are never shown."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk is: partition, offset, and the attempt that wrote it. As text it names the
    piece in a manifest.

    >>> Place.parse(str(Place(3, 120, "a1")))
    Place(partition=3, offset=120, attempt='a1')
    """

    partition: int
    offset: int
    attempt: str

    def __str__(self) -> str:
        return f"{self.partition}-{self.offset}-{self.attempt}"

    @classmethod
    def parse(cls, text: str) -> Place:
        partition, offset, attempt = text.split("-")
        return cls(int(partition), int(offset), attempt)


@dataclass(frozen=True, slots=True)
class Slice:
    """Events ``start`` to ``end`` of one chunk."""

    topic: str
    place: Place
    start: int
    end: int


@dataclass(frozen=True)
class Outgoing:
    """One channel's way out: the columns it carries and the topics (with their partitions) that get
    a copy each.
    """

    columns: tuple[str, ...]
    topics: Mapping[str, int]


@dataclass(frozen=True)
class Writing:
    """One batch on its way into topics. ``outlets`` are by the value of the column ``_to``;
    ``per_chunk`` events fit in one chunk at most.
    """

    config: Config = field(repr=False)
    operator: str
    batch: int
    outlets: Mapping[str, Outgoing]
    per_chunk: int = CHUNK_EVENTS


def produce(writing: Writing) -> Body:
    """The body of a task that appends its events; it gives one row per chunk, in ``PLACES``."""

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task = TaskContext.get()
        task_id = task.partitionId() if task else 0
        chunks = _Chunks(writing, task_id, f"{uuid4().hex[:12]}")
        for batch in batches:
            chunks.add(batch)
        yield from chunks.done()

    return body


class _Chunks:
    """Collects a task's events per channel and appends them chunk by chunk."""

    def __init__(self, writing: Writing, task: int, attempt: str) -> None:
        self._writing = writing
        self._task = task
        self._attempt = attempt
        self._producer = _producer(writing.config)
        self._waiting: dict[str, list[pa.RecordBatch]] = {o: [] for o in writing.outlets}
        self._rows: list[dict[str, Any]] = []
        self._failures: list[KafkaError] = []

    def add(self, batch: pa.RecordBatch) -> None:
        outlets = self._writing.outlets
        if TO not in batch.schema.names:
            (only,) = outlets
            self._put(only, batch)
            return
        to = batch.column(TO)
        for name in pc.unique(to).to_pylist():
            self._put(name, batch.filter(pc.equal(to, name)))

    def _put(self, outlet: str, batch: pa.RecordBatch) -> None:
        batch = batch.select(list(self._writing.outlets[outlet].columns))
        per_chunk = self._writing.per_chunk
        for start in range(0, batch.num_rows, per_chunk):
            self._waiting[outlet].append(batch.slice(start, per_chunk))
            if sum(b.num_rows for b in self._waiting[outlet]) >= per_chunk:
                self._send(outlet)

    def _send(self, outlet: str) -> None:
        waiting, self._waiting[outlet] = self._waiting[outlet], []
        if not waiting:
            return
        rows = pa.Table.from_batches(waiting).combine_chunks().to_batches()[0]
        for chunk, value in _encoded(rows, self._writing):
            for topic, partitions in self._writing.outlets[outlet].topics.items():
                self._append(outlet, topic, self._task % partitions, chunk, value)

    def _append(
        self, outlet: str, topic: str, partition: int, chunk: pa.RecordBatch, value: bytes
    ) -> None:
        headers = {
            "producer": self._writing.operator,
            "batch": str(self._writing.batch),
            "attempt": self._attempt,
            "events": str(chunk.num_rows),
        }
        row = {"channel": outlet, "topic": topic, "events": chunk.num_rows, **_stamps(chunk)}

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                self._failures.append(error)
                return
            row["place"] = str(Place(message.partition(), message.offset(), self._attempt))

        while True:
            try:
                self._producer.produce(
                    topic,
                    value,
                    partition=partition,
                    headers=[(k, v.encode()) for k, v in headers.items()],
                    on_delivery=delivered,
                )
                break
            except BufferError:  # the client's queue is full: wait for the broker to take some
                self._producer.poll(0.1)
            except KafkaException as error:
                raise failed(error.args[0], topic) from None
        self._rows.append(row)
        self._producer.poll(0)

    def done(self) -> Iterator[pa.RecordBatch]:
        for outlet in self._writing.outlets:
            self._send(outlet)
        while self._producer.flush(0.05) and not self._failures:
            continue
        if self._failures:
            raise failed(self._failures[0], ", ".join(sorted({r["topic"] for r in self._rows})))
        if self._rows:
            yield pa.RecordBatch.from_pylist(self._rows, schema=PLACES)


def _encoded(rows: pa.RecordBatch, writing: Writing) -> Iterator[tuple[pa.RecordBatch, bytes]]:
    """Rows as one chunk, or as more where one would be too large."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    value = sink.getvalue().to_pybytes()
    if len(value) <= CHUNK_BYTES or rows.num_rows == 1:
        yield rows, value
        return
    half = rows.num_rows // 2
    yield from _encoded(rows.slice(0, half), writing)
    yield from _encoded(rows.slice(half), writing)


def _stamps(chunk: pa.RecordBatch) -> dict[str, Any]:
    if STAMP not in chunk.schema.names:
        return {"stamp_sum": None, "stamps": None}
    stamps = chunk.column(STAMP).drop_null().to_numpy(zero_copy_only=False)
    return {"stamp_sum": float(stamps.sum()), "stamps": summary(stamps, 64).tobytes()}


def unpacked(stamps: bytes | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Stamps as they were before they were packed; none for none."""
    return np.frombuffer(stamps or b"", dtype=np.float64)


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
                raise _gone(where[0])
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
            raise _gone(topic)


def _passes(error: KafkaError) -> bool:
    """Whether a failure is about reaching a broker, which may come back."""
    return error.code() in (
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._PARTITION_EOF,
    )


def _gone(topic: str) -> PipelineFailed:
    return PipelineFailed(
        f"{MARK}records that were delivered and not read yet are gone from topic {topic}: its "
        "retention removed them, or it was made anew; they cannot be read any more. Raise the "
        f"topic's retention, and start the pipeline anew in another directory{MARK}"
    )


_NO_TOPIC = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._DESTROY,  # a record that waited for a partition which was deleted
)


def failed(error: KafkaError, topic: str) -> PipelineFailed:
    """A failure of the client as a sentence."""
    code = error.code()
    if code in _NO_TOPIC:
        said = (
            f"topic {topic} is gone: nothing was deleted by Foretide; what was in it is lost, so "
            "start the pipeline anew in another directory"
        )
    elif code in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
        return _gone(topic)
    elif code == KafkaError.MSG_SIZE_TOO_LARGE:
        said = (
            f"an event is larger than topic {topic} takes: raise max.message.bytes of the topic "
            f"and "
            "kafka.message.max.bytes of the edges"
        )
    elif code in (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED):
        said = "Kafka refuses the credentials of the edges: check the sasl.* and ssl.* options"
    else:
        said = f"topic {topic}: {error.name()}: {error.str()}"
    return PipelineFailed(f"{MARK}{said}{MARK}")


@lru_cache(maxsize=4)
def _client(kind: str, config: Config, pid: int) -> Any:
    return Producer(dict(config)) if kind == "producer" else Consumer(dict(config))


def _producer(config: Config) -> Producer:
    more = {
        "acks": "all",
        # Not idempotent: a record that a retry appends twice is named once, and getting a producer
        # id takes a second at the start of every worker.
        "enable.idempotence": "false",
        "compression.type": "lz4",
        "linger.ms": "1",
        "message.timeout.ms": "0",  # a broker that is away is waited for
        "topic.metadata.propagation.max.ms": "3000",
    }
    producer: Producer = _client("producer", _with(config, more), os.getpid())
    return producer


def _consumer(config: Config) -> Consumer:
    more = {
        "group.id": "foretide-edges",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "auto.offset.reset": "error",
        "queued.min.messages": "32",
        "fetch.error.backoff.ms": "100",
        "topic.metadata.propagation.max.ms": "3000",
    }
    consumer: Consumer = _client("consumer", _with(config, more), os.getpid())
    return consumer


def _with(config: Config, more: Mapping[str, str]) -> Config:
    return tuple(sorted({"log_level": "2", **more, **dict(config)}.items()))


def evenly(pieces: Sequence[tuple[str, Place, int]], tasks: int) -> list[list[Slice]]:
    """Chunks (topic, place, events) over ``tasks``: equal numbers of events, whatever the
    partitions and the chunks.

    >>> a, b = Place(0, 7, "x"), Place(1, 9, "y")
    >>> shares = evenly([("t", a, 4), ("t", b, 2)], 2)
    >>> [[(s.place.offset, s.start, s.end) for s in t] for t in shares]
    [[(7, 0, 3)], [(7, 3, 4), (9, 0, 2)]]
    """
    total = sum(events for _, _, events in pieces)
    bounds = [total * i // tasks for i in range(tasks + 1)]
    shares: list[list[Slice]] = [[] for _ in range(tasks)]
    first = 0
    for topic, place, events in pieces:
        for i in range(tasks):
            low, high = max(bounds[i], first), min(bounds[i + 1], first + events)
            if low < high:
                shares[i].append(Slice(topic, place, low - first, high - first))
        first += events
    return shares
