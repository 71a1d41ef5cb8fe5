"""The topics of a pipeline's edges: names, partitions, retention, and where in them a piece of a
batch is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import msgspec

from foretide.errors import InvalidConfig, PipelineFailed
from foretide.spark.edge.kafka_client import Cluster, topic_name
from foretide.spark.edge.kafka_records import Place
from foretide.spark.edge.protocol import File, Position
from foretide.spark.edge.store import Place as Kept
from foretide.spark.edge.store import replace

log = logging.getLogger(__name__)
Chunk = tuple[str, Place, int]
"""A chunk's topic, place and number of events."""
WARN_S = 60.0


class Topics:
    """Which topic holds what: names, partitions, retention. Shared by all edges of a pipeline.
    ``on_disk`` are the (operator, reader) pairs that have no topic.
    """

    def __init__(
        self, cluster: Cluster, prefix: str, on_disk: Collection[tuple[str, str]] = ()
    ) -> None:
        self.cluster = cluster
        self.prefix = prefix
        self.on_disk = frozenset(on_disk)
        self.partitions: dict[str, int] = {}
        self._retention_s: dict[str, float | None] = {}
        self._taken: dict[str, Position] = {}
        self._warned_at = -WARN_S

    def name(self, producer: str, folder: str) -> str:
        """The topic of one reader; ``folder`` is its name in an outbox."""
        return topic_name(self.prefix, producer, folder.removeprefix("to."))

    def ensure(self, wanted: Mapping[str, int]) -> None:
        self.cluster.ensure(wanted)
        there = self.cluster.topics()
        self.partitions = {t: there.get(t, n) for t, n in wanted.items()}
        self._retention_s = {t: self.cluster.retention_s(t) for t in wanted}

    def take(self, topic: str, position: Position) -> None:
        """The batches that a reader has committed are up to here."""
        self._taken[topic] = max(position, self.taken(topic))

    def taken(self, topic: str) -> Position:
        """How far a reader has read, as far as this start of the driver knows."""
        return self._taken.get(topic, Position())

    def check_age(self, topic: str, oldest_at: float) -> None:
        """Warn when records wait that the topic will remove before long."""
        kept_s, age_s = self._retention_s.get(topic), time.time() - oldest_at
        if kept_s is None or age_s < kept_s / 2 or time.monotonic() - self._warned_at < WARN_S:
            return
        self._warned_at = time.monotonic()
        log.warning(
            "topic %s keeps records for %.0f s, and events have waited %.0f s to be read: raise "
            "its retention.ms before they are lost",
            topic,
            kept_s,
            age_s,
        )


def is_file(name: str) -> bool:
    """Whether a piece is a file, not a record.

    >>> is_file("edges/a/b-0/to.b/5f00c2-00000.parquet"), is_file("edges/a/b-0/to.b/3-120-5f00c2")
    (True, False)
    """
    return name.endswith(".parquet")


def chunk_of(topics: Topics, path: str, events: int) -> Chunk:
    """The chunk that a file of an outbox stands for."""
    file = Path(path)
    return topics.name(file.parts[-4], file.parts[-2]), Place.parse(file.name), events


def ends_of(files: Sequence[File]) -> dict[int, int]:
    """The offset after the last of some chunks, per partition; files have none.

    >>> ends_of([("0-7-x", 10), ("0-9-y", 10), ("1-3-x", 5), ("x-00000.parquet", 5)])
    {0: 10, 1: 4}
    """
    ends: dict[int, int] = {}
    for name, _ in files:
        if is_file(name):
            continue
        place = Place.parse(name)
        ends[place.partition] = max(ends.get(place.partition, 0), place.offset + 1)
    return ends


def prefix_in(folder: Kept, pipeline: str, prefix: str | None, sinks: str = "kafka") -> str:
    """What the names of this folder's topics begin with: the user's choice, or a name that no other
    folder's pipeline has. A folder keeps to what it began with, also in what its ``sinks`` are
    (``"kafka"`` or ``"directory"``); single edges may change.
    """
    file = folder / "kafka.json"
    if file.exists():
        try:
            begun = msgspec.json.decode(file.read_bytes(), type=dict[str, str])
            kept = begun["prefix"]
        except (msgspec.DecodeError, KeyError) as error:
            raise PipelineFailed(
                f"{file} cannot be read ({error}): restore it, or start in another directory"
            ) from error
        if prefix is not None and prefix != kept:
            raise InvalidConfig(
                f"the edges in {folder} are topics named {kept}.*, not {prefix}.*: choose another "
                "directory"
            )
        if begun.get("sinks", "kafka") != sinks:
            before, now = ("topics", "files") if sinks == "directory" else ("files", "topics")
            raise InvalidConfig(
                f"the sinks in {folder} are {before}, not {now}: declare the pipeline's edges as "
                "before, or choose another directory"
            )
        return kept
    if sinks == "kafka" and (folder / "edges").exists():
        raise InvalidConfig(f"the edges in {folder} are directories: choose another directory")
    chosen = prefix or topic_name("foretide", pipeline, uuid4().hex[:8])
    replace(file, msgspec.json.encode({"prefix": chosen, "sinks": sinks}))
    return chosen
