"""The load generator: a streaming source that emits exactly the events of a load, the same ones
again after a restart.

The Python data source plans whole intervals (which event ids are due, and when); Spark's own code
unrolls them to events and makes their payload from the id and a seed, so a million events cost as
little Python as ten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from foretide.load import Load
from foretide.spark.worker.planning import end_quietly

SCHEMA = "id long, at double, key long, value double"
"""What a generated event holds: its number, when it is due (UTC seconds), a key in ``[0, keys)``, a
value in ``[0, 1)``.
"""


@dataclass(frozen=True)
class Timetable:
    """When each event of a load is due, relative to the start: event j of n in an interval at its
    (j+1)/n-th part.

    >>> t = Timetable((2, 0, 4), 1.0)
    >>> t.total, [t.due(s) for s in (0.4, 0.5, 1.0, 2.0, 2.5, 9.0)]
    (6, [0, 1, 2, 2, 4, 6])
    >>> t.spans(1, 4)
    [(1, 2, 0, 2, 0.0), (2, 4, 2, 4, 2.0)]
    """

    counts: tuple[int, ...]
    interval_s: float

    @classmethod
    def of(cls, load: Load) -> Timetable:
        return cls(tuple(int(n) for n in load.whole_counts()), load.interval_s)

    @cached_property
    def _before(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.concatenate(([0], np.cumsum(np.array(self.counts, dtype=np.int64))))

    @property
    def total(self) -> int:
        return int(self._before[-1])

    def due(self, elapsed_s: float) -> int:
        """Events due in the first ``elapsed_s`` seconds."""
        i = int(elapsed_s // self.interval_s)
        if elapsed_s <= 0:
            return 0
        if i >= len(self.counts):
            return self.total
        part = (elapsed_s - i * self.interval_s) / self.interval_s
        return int(self._before[i]) + int(part * self.counts[i] + 1e-9)

    def spans(self, start: int, end: int) -> list[tuple[int, int, int, int, float]]:
        """Events start..end-1 by interval: (first, end, first of the interval, events in the
        interval, interval's start).
        """
        spans = []
        i = int(np.searchsorted(self._before, start, side="right")) - 1
        while i < len(self.counts) and self._before[i] < end:
            low, high = max(start, int(self._before[i])), min(end, int(self._before[i + 1]))
            if low < high:
                spans.append((low, high, int(self._before[i]), self.counts[i], i * self.interval_s))
            i += 1
        return spans


@dataclass
class _Span(InputPartition):
    start: int
    end: int


class _Reader(DataSourceStreamReader):
    def __init__(self, timetable: Timetable, started_at: float, max_events: int) -> None:
        self.timetable = timetable
        self.started_at = started_at
        self.max_events = max_events

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"events": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        due = self.timetable.due(time.time() - self.started_at)
        return {"events": max(start["events"], min(due, start["events"] + self.max_events))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [_Span(start["events"], end["events"])] if end["events"] > start["events"] else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int, int, int, float]]:
        assert isinstance(partition, _Span)
        yield from self.timetable.spans(partition.start, partition.end)


class LoadDataSource(DataSource):
    """Format ``foretide-load``: rows of (first, end, base, count, start_s), one per interval that a
    batch touches.
    """

    @classmethod
    def name(cls) -> str:
        return "foretide-load"

    def schema(self) -> str:
        return "first long, end long, base long, count long, start_s double"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        end_quietly()
        counts = tuple(msgspec.json.decode(self.options["counts"], type=list[int]))
        timetable = Timetable(counts, float(self.options["interval_s"]))
        return _Reader(
            timetable, float(self.options["started_at"]), int(self.options["max_events"])
        )


@dataclass(frozen=True)
class Generator:
    """A load as a source of a pipeline; it begins ``after_s`` seconds after the pipeline first
    started.

    ``keys`` are uniform, or Zipf-like when ``skew`` > 0: key k has weight ``(k+1)^-skew``. With
    ``payload``, a function of an event's id, events are ``id, at, raw``: ``raw`` is what it
    returns, of the type ``payload_type``.
    """

    load: Load
    after_s: float = 0.0
    seed: int = 0
    keys: int = 1000
    skew: float = 0.0
    max_events_per_batch: int = 1_000_000
    payload: Callable[[int], Any] | None = None
    payload_type: str = "string"

    @cached_property
    def timetable(self) -> Timetable:
        return Timetable.of(self.load)

    def due(self, elapsed_s: float) -> int:
        """Events due when the pipeline is ``elapsed_s`` seconds old."""
        return self.timetable.due(elapsed_s - self.after_s)

    def stream(self, spark: SparkSession, started_at: float) -> DataFrame:
        """The events as a streaming DataFrame; ``started_at`` is the instant of the pipeline's
        first start.
        """
        begins_at = started_at + self.after_s
        spark.dataSource.register(LoadDataSource)
        spans = (
            spark.readStream.format("foretide-load")
            .option("counts", msgspec.json.encode(list(self.timetable.counts)).decode())
            .option("interval_s", str(self.timetable.interval_s))
            .option("started_at", repr(begins_at))
            .option("max_events", str(self.max_events_per_batch))
            .load()
        )
        due = sf.col("start_s") + (sf.col("id") - sf.col("base") + 1) / sf.col("count") * sf.lit(
            self.timetable.interval_s
        )
        events = spans.select("*", sf.explode(sf.sequence("first", sf.col("end") - 1)).alias("id"))
        at = (sf.lit(begins_at) + due).alias("at")
        if self.payload is not None:
            raw = sf.udf(self.payload, self.payload_type, useArrow=True)("id").alias("raw")
            return events.select("id", at, raw)
        value = self._uniform("value").alias("value")
        return events.select("id", at, self._key().alias("key"), value)

    def _uniform(self, salt: str) -> Column:
        bits = sf.shiftrightunsigned(sf.xxhash64(sf.lit(self.seed), sf.lit(salt), sf.col("id")), 11)
        return bits.cast("double") / sf.lit(float(2**53))

    def _key(self) -> Column:
        if self.skew <= 0:
            return sf.floor(self._uniform("key") * self.keys).cast("long")
        weights = np.cumsum(np.arange(1, self.keys + 1, dtype=float) ** -self.skew)
        edges = sf.array(*[sf.lit(float(w)) for w in weights / weights[-1]])
        drawn = self._uniform("key")
        return sf.size(sf.filter(edges, lambda edge: edge <= drawn)).cast("long")
