"""Edges as Kafka topics: executors need no disk in common with the driver or with each other.

The events are in Kafka; what was delivered is in the pipeline's folder, which only the driver uses.
A delivered batch is a folder of an outbox, as with directories, that holds a manifest and an empty
file for every chunk (a Kafka record with many events). The file's name is the chunk's partition,
offset and attempt. The folder appears by one rename, so a batch is delivered or not, whatever was
appended to the topics before. One topic per reader (consumer, sink or dead letters).

Single readers may be on disk instead (``Topics.on_disk``): the same tasks then write their events
to files of the batch's folder. A piece's name says which it is, so a reader takes both.

Records that a consumer's committed batches have read are deleted; topics made here keep all others
for ever.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import Row, StructType

from foretide.model import Array
from foretide.spark.edge.inbox import Inbox
from foretide.spark.edge.kafka_client import Cluster, client_config, topic_name
from foretide.spark.edge.kafka_read import read_slices
from foretide.spark.edge.kafka_records import Config, Place, Slice, evenly
from foretide.spark.edge.kafka_topics import Topics, chunk_of, ends_of, is_file
from foretide.spark.edge.kafka_write import (
    CHUNK_EVENTS,
    PLACES_DDL,
    Outgoing,
    Writing,
    produce,
    unpacked,
)
from foretide.spark.edge.outbox import Outbox, share
from foretide.spark.edge.protocol import Durability, File, Outlet, Piece, Position
from foretide.spark.edge.source import EdgeDataSource, edge_stream, read_files
from foretide.spark.edge.store import Place as Kept
from foretide.spark.edge.store import StorePath
from foretide.spark.edge.stored import StoredBatches
from foretide.spark.worker.stamps import summary


class KafkaOutput(Outbox):
    """One operator's batches: events in topics, manifests in a folder of the driver."""

    def __init__(self, root: Path, durability: Durability, topics: Topics) -> None:
        super().__init__(root, durability)
        self._begin(topics)

    def _begin(self, topics: Topics) -> None:
        self._topics = topics
        self._fresh: list[Row] = []
        self._written: dict[str, list[Row]] = {}

    def write(
        self, frame: DataFrame, outlets: Mapping[str, Outlet], staging: Path, per_file: int
    ) -> None:
        batch = int(staging.name.rpartition("-")[2])
        per_chunk = min(CHUNK_EVENTS, per_file or CHUNK_EVENTS)
        outgoing = {key: self._outgoing(key, o, staging) for key, o in outlets.items()}
        config = self._topics.cluster.config
        writing = Writing(config, self.root.name, batch, outgoing, per_chunk, per_file)
        self._fresh = frame.mapInArrow(produce(writing), PLACES_DDL).collect()

    def _outgoing(self, key: str, outlet: Outlet, staging: Path) -> Outgoing:
        topics = [self._topic(f) for f in outlet.folders if not self.on_disk(f)]
        folder = None
        if len(topics) < len(outlet.folders):
            folder = staging / "data" / key
            folder.mkdir(parents=True, exist_ok=True)
        partitions = {t: self._topics.partitions[t] for t in topics}
        return Outgoing(outlet.columns, partitions, None if folder is None else str(folder))

    def on_disk(self, folder: str) -> bool:
        return (self.root.name, folder) in self._topics.on_disk

    def stage(self, batch: int) -> Path:
        self._fresh, self._written = [], {}
        return super().stage(batch)

    def release(self, batch: int, folder: str) -> None:
        files = self.manifest(batch).files.get(folder, ())
        super().release(batch, folder)
        self._topics.cluster.delete_up_to(self._topic(folder), ends_of(files))

    def _topic(self, folder: str) -> str:
        return self._topics.name(self.root.name, folder)

    def collect(self, outlets: Mapping[str, Outlet], staging: Path) -> dict[str, tuple[File, ...]]:
        files: dict[str, tuple[File, ...]] = {}
        for key, outlet in outlets.items():
            written = [r for r in self._fresh if r.channel == key]
            for folder in outlet.folders:
                held = self._held(folder, written)
                if held:
                    self._place(staging, folder, key, [str(r.place) for r in held])
                    files[folder] = tuple((str(r.place), int(r.events)) for r in held)
                    self._written.setdefault(folder, []).extend(held)
        shutil.rmtree(staging / "data", ignore_errors=True)
        self._fresh = []
        return files

    def _held(self, folder: str, rows: Sequence[Row]) -> list[Row]:
        """What was written for one reader."""
        topic = None if self.on_disk(folder) else self._topic(folder)
        return [r for r in rows if r.topic == topic]

    def _place(self, staging: Path, folder: str, key: str, names: Sequence[str]) -> None:
        """Put the files of one reader, or the empty files that stand for records, in its folder."""
        (staging / folder).mkdir(exist_ok=True)
        if self.on_disk(folder):
            share([staging / "data" / key / name for name in names], [staging / folder])
            return
        for name in names:
            (staging / folder / name).touch()

    def stamps(
        self, staging: Path, files: Mapping[str, Sequence[File]]
    ) -> tuple[Array, float, float] | None:
        for folder in files:
            rows = self._written[folder]
            stamps = np.concatenate([unpacked(r.stamps) for r in rows])
            count = float(sum(r.events for r in rows))
            return summary(stamps), count, float(sum(r.stamp_sum or 0.0 for r in rows))
        return None

    def frame(
        self, spark: SparkSession, schema: StructType, folder: str, batch: int | None = None
    ) -> DataFrame | None:
        batches = self.batches() if batch is None else [batch]
        pieces = [
            (str(self.folder(b) / folder / name), events)
            for b in batches
            if self.holds(b, folder)
            for name, events in self.manifest(b).files.get(folder, ())
        ]
        if not pieces and batch is not None:
            return None
        return _frame(spark, self._topics, schema, pieces, 1)


class StoredKafkaOutput(StoredBatches, KafkaOutput):  # type: ignore[misc]
    """The same with the manifests in a store: all that ``Outbox`` does, ``StoredBatches`` does."""

    def __init__(self, root: StorePath, topics: Topics) -> None:
        StoredBatches.__init__(self, root, lambda reader: topics.taken(self._topic(reader)))
        self._begin(topics)

    def stage(self, batch: int) -> Path:
        self._fresh, self._written = [], {}
        return StoredBatches.stage(self, batch)

    def release(self, batch: int, folder: str) -> None:
        files = self.manifest(batch).files.get(folder, ())
        StoredBatches.release(self, batch, folder)
        self._topics.cluster.delete_up_to(self._topic(folder), ends_of(files))


class KafkaInput(Inbox):
    """The chunks that wait for one consumer."""

    def __init__(
        self, edges: Kept, consumer: str, producers: Sequence[str], topics: Topics
    ) -> None:
        super().__init__(edges, consumer, producers)
        self._topics = topics

    @property
    def on_disk(self) -> bool:
        return all((p, self._folder) in self._topics.on_disk for p in self.producers)

    def between(self, start: Mapping[str, str], end: Mapping[str, str]) -> dict[str, list[Piece]]:
        pieces = super().between(start, end)
        for producer, held in pieces.items():
            if held and not is_file(held[0].name):
                topic = self._topics.name(producer, self._folder)
                self._topics.check_age(topic, held[0].delivered_at)
        return pieces

    def discard(self, pieces: Sequence[Piece]) -> None:
        if not isinstance(self.edges, StorePath):
            super().discard(pieces)
        last: dict[tuple[str, int], Position] = {}
        for piece in pieces:
            batch = Path(piece.name).parent.parent
            key = batch.parent.name, piece.after.batch
            last[key] = max(piece.after, last.get(key, Position()))
        for (producer, batch_id), position in last.items():
            topic = self._topics.name(producer, self._folder)
            self._topics.take(topic, position)
            manifest = self._outboxes[producer].still(batch_id)
            files = manifest.files.get(self._folder, ()) if manifest else ()
            if position.files >= len(files):  # the last of its batch was read: so was all before it
                self._topics.cluster.delete_up_to(topic, ends_of(files))

    def frame(
        self, spark: SparkSession, schema: StructType, pieces: Sequence[Piece], tasks: int = 1
    ) -> DataFrame:
        return _frame(spark, self._topics, schema, [(p.name, p.events) for p in pieces], tasks)

    def stream(
        self, spark: SparkSession, schema: StructType, limit_file: Path, pause_s: float
    ) -> DataFrame:
        kind = _stream_kind(self._topics.cluster.config, self._topics.prefix)
        return edge_stream(spark, self, schema, limit_file, pause_s, kind)


def _frame(
    spark: SparkSession, topics: Topics, schema: StructType, pieces: Sequence[File], tasks: int
) -> DataFrame:
    """The events of some pieces, records and files."""
    files = [name for name, _ in pieces if is_file(name)]
    chunks = [chunk_of(topics, name, events) for name, events in pieces if not is_file(name)]
    if not files:
        return _record_frame(spark, topics.cluster.config, schema, evenly(chunks, tasks))
    frame = spark.read.schema(schema).parquet(*files)
    if chunks:
        records = _record_frame(spark, topics.cluster.config, schema, evenly(chunks, tasks))
        frame = frame.union(records)
    return frame


def _record_frame(
    spark: SparkSession, config: Config, schema: StructType, shares: list[list[Slice]]
) -> DataFrame:
    """Some slices of chunks as a DataFrame with one partition per share."""
    arrow = to_arrow_schema(schema, timezone="UTC")

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            continue
        task = TaskContext.get()
        yield from read_slices(config, shares[task.partitionId() if task else 0], arrow)

    return spark.range(0, len(shares), 1, len(shares)).mapInArrow(body, schema)


def _stream_kind(config: Config, prefix: str) -> type[EdgeDataSource]:
    """The streaming source of one cluster. Spark pickles the class, so the client's options reach
    the workers without being options of a query, which plans and logs may show.
    """

    def read(paths: Sequence[tuple[str, int]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        yield from read_files([p for p in paths if is_file(p[0])], schema)
        slices = []
        for path, events in paths:
            if is_file(path):
                continue
            file = Path(path)
            topic = topic_name(prefix, file.parts[-4], file.parts[-2].removeprefix("to."))
            slices.append(Slice(topic, Place.parse(file.name), 0, events))
        if slices:
            yield from read_slices(config, slices, schema)

    digest = hashlib.sha256(repr((prefix, config)).encode()).hexdigest()[:12]
    name = f"foretide-edge-{digest}"
    return type(
        "KafkaEdgeDataSource",
        (EdgeDataSource,),
        {"name": classmethod(lambda cls: name), "read_pieces": staticmethod(read)},
    )


class KafkaEdges:
    """All edges of a pipeline on one cluster, but for the (operator, reader) pairs ``on_disk``.
    ``root`` is for manifests, and the files of those: a folder of the driver, which executors see
    where there are files, or a place in a store.
    """

    def __init__(
        self,
        root: Kept,
        servers: str,
        options: Mapping[str, str],
        prefix: Callable[[], str],
        durability: Durability = "process",
        on_disk: Collection[tuple[str, str]] = (),
    ) -> None:
        self.root = root
        self.durability: Durability = durability
        cluster = Cluster(client_config(servers, options))
        cluster.topics()  # nothing is written down before a broker has answered
        self.topics = Topics(cluster, prefix(), on_disk)

    @property
    def shares_disk(self) -> bool:
        return bool(self.topics.on_disk)

    def prepare(self, readers: Mapping[tuple[str, str], int]) -> None:
        """Make or check the topic of every (operator, reader) that has one, with so many partitions
        at least.
        """
        topics = {r: n for r, n in readers.items() if r not in self.topics.on_disk}
        self.topics.ensure({self.topics.name(*reader): n for reader, n in topics.items()})
        self.topics.cluster.watch()

    def output(self, operator: str) -> KafkaOutput:
        place = self.root / operator
        if isinstance(place, StorePath):
            return StoredKafkaOutput(place, self.topics)
        return KafkaOutput(place, self.durability, self.topics)

    def input(self, consumer: str, producers: Sequence[str]) -> KafkaInput:
        return KafkaInput(self.root, consumer, producers, self.topics)

    def close(self) -> None:
        self.topics.cluster.close()
