"""What tasks do with the events that leave an operator: append them to Kafka topics, and write them
to files for readers whose edge is a directory.

A record holds a chunk of events as an Arrow stream, so types are exact and a thousand events cost
one record. Its headers say which producer, batch and task attempt wrote it, and how many events it
holds. A task returns the places of the records and files it wrote; Spark keeps those of the attempt
that succeeded, and only these are named in the manifest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from confluent_kafka import KafkaError, KafkaException, Producer

from foretide.spark.edge.kafka_records import Config, Place, client, failed, with_options
from foretide.spark.worker.columns import STAMP, TO
from foretide.spark.worker.stamps import summary

Body = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
CHUNK_EVENTS = 2048
CHUNK_BYTES = 400_000
"""A chunk's size at most: a broker takes records of 1 MB unless it is configured otherwise."""
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


@dataclass(frozen=True)
class Outgoing:
    """One channel's way out: the columns it carries, the topics (with their partitions) that get a
    copy each, and the folder for its files where some reader's edge is a directory.
    """

    columns: tuple[str, ...]
    topics: Mapping[str, int]
    folder: str | None = None


@dataclass(frozen=True)
class Writing:
    """One batch on its way out. ``outlets`` are by the value of the column ``_to``; a record holds
    ``per_chunk`` events at most, a file ``per_file`` (0: no limit).
    """

    config: Config = field(repr=False)
    operator: str
    batch: int
    outlets: Mapping[str, Outgoing]
    per_chunk: int = CHUNK_EVENTS
    per_file: int = 0


def produce(writing: Writing) -> Body:
    """The body of a task that writes its events; it gives one row per record or file, in
    ``PLACES``.
    """

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
        self._files = {
            o: _Files(outgoing.folder, attempt, writing.per_file)
            for o, outgoing in writing.outlets.items()
            if outgoing.folder is not None
        }
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
        outgoing = self._writing.outlets[outlet]
        batch = batch.select(list(outgoing.columns))
        if outlet in self._files:
            self._files[outlet].add(batch)
        if not outgoing.topics:
            return
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
        for outlet, files in self._files.items():
            self._rows += [{"channel": outlet, "topic": None, **row} for row in files.done()]
        if self._rows:
            yield pa.RecordBatch.from_pylist(self._rows, schema=PLACES)


class _Files:
    """Writes a task's events of one channel to Parquet files, ``per_file`` in each at most. The
    attempt is part of their names: a later attempt writes files of its own.
    """

    def __init__(self, folder: str, attempt: str, per_file: int) -> None:
        self._name = f"{folder}/{attempt}"
        self._per_file = per_file
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.RecordBatch] = []
        self._rows: list[dict[str, Any]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            held = sum(b.num_rows for b in self._held)
            part = batch.slice(0, self._per_file - held) if self._per_file else batch
            batch = batch.slice(part.num_rows)
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._path, part.schema)
            self._writer.write_batch(part)
            self._held.append(part)
            if self._per_file and held + part.num_rows >= self._per_file:
                self._close()

    @property
    def _path(self) -> str:
        return f"{self._name}-{len(self._rows):05d}.parquet"

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            written = pa.Table.from_batches(self._held)
            name, events = self._path.rpartition("/")[2], written.num_rows
            self._rows.append({"place": name, "events": events, **_stamps(written)})
            self._writer, self._held = None, []

    def done(self) -> list[dict[str, Any]]:
        """Names, counts and stamps of the files."""
        self._close()
        return self._rows


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


def _stamps(chunk: pa.RecordBatch | pa.Table) -> dict[str, Any]:
    if STAMP not in chunk.schema.names:
        return {"stamp_sum": None, "stamps": None}
    stamps = np.asarray(chunk.column(STAMP).drop_null())
    return {"stamp_sum": float(stamps.sum()), "stamps": summary(stamps, 64).tobytes()}


def unpacked(stamps: bytes | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Stamps as they were before they were packed; none for none."""
    return np.frombuffer(stamps or b"", dtype=np.float64)


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
    producer: Producer = client("producer", with_options(config, more), os.getpid())
    return producer
