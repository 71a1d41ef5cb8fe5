"""Kafka records of an edge: where a chunk of events is, how tasks share chunks, and what a failure
of the client means in a sentence.

Runs in Spark's Python workers, which keep one producer and one consumer each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from confluent_kafka import Consumer, KafkaError, Producer

from foretide.errors import PipelineFailed
from foretide.spark.worker.work import MARK

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


def gone(topic: str) -> PipelineFailed:
    """Records that a manifest names are not in their topic any more."""
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
        return gone(topic)
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
def client(kind: Literal["producer", "consumer"], config: Config, pid: int) -> Any:
    """The one client of its kind of a process; a forked process makes its own."""
    return Producer(dict(config)) if kind == "producer" else Consumer(dict(config))


def with_options(config: Config, more: Mapping[str, str]) -> Config:
    """Options for one kind of client; those of the user win."""
    return tuple(sorted({"log_level": "2", **more, **dict(config)}.items()))
