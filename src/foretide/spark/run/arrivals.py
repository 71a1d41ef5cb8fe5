"""How many events the sources outside the pipeline have received, whether or not a batch took them.

Spark logs where a batch starts and ends before it runs it. A *feed* knows what the offsets of one
kind of source mean: the events between two offsets, and the events that wait beyond one. Where a
feed cannot say, the rate of the last batches is extrapolated while a batch runs; with no batch to
learn from the count is unknown (None), never 0.
"""

from __future__ import annotations

import fnmatch
import glob
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from foretide.spark.declare.generator import Generator
from foretide.spark.edge.checkpoint import Checkpoint
from foretide.spark.edge.protocol import Manifest
from foretide.spark.edge.store import Place

log = logging.getLogger(__name__)
POLL_TIMEOUTS = {"request.timeout.ms": "2000", "default.api.timeout.ms": "3000"}
SCANNED_BYTES = 1 << 22
"""Lines of a text file are counted up to here; beyond, their mean length is taken for the rest."""


class Feed(Protocol):
    """The offsets of one source. None stands for unknown."""

    def between(self, start: Any, end: Any) -> float | None:
        """Events from offset ``start`` (None: the very first) to ``end``."""

    def beyond(self, end: Any, at: float) -> float | None:
        """Events that the source holds at ``at`` after offset ``end`` (None: all)."""


@dataclass(frozen=True)
class GeneratedFeed:
    """A generated load: its offset counts events, and its timetable says which are due."""

    generator: Generator
    started_at: float

    def between(self, start: Any, end: Any) -> float | None:
        return float(_events(end) - _events(start))

    def beyond(self, end: Any, at: float) -> float | None:
        return float(max(0, self.due(at) - _events(end)))

    def due(self, at: float) -> int:
        return self.generator.due(at - self.started_at)


def _events(offset: Any) -> int:
    return int(offset["events"]) if offset else 0


@dataclass(frozen=True)
class RateFeed:
    """Spark's ``rate`` source: its offset counts seconds since its creation, which the checkpoint
    holds; ``per_s`` events come each second, after a ramp-up of ``ramp_s`` seconds.

    >>> from pathlib import Path
    >>> RateFeed(Path("none"), 100.0).between(2, 5)
    300.0
    """

    log: Place
    per_s: float
    ramp_s: int = 0

    def between(self, start: Any, end: Any) -> float | None:
        return self._events(int(end)) - self._events(int(start or 0))

    def beyond(self, end: Any, at: float) -> float | None:
        try:
            created_at = float((self.log / "0").read_text().splitlines()[-1]) / 1e3
        except (OSError, ValueError, IndexError):
            return None
        return max(0.0, self._events(int(at - created_at)) - self._events(int(end or 0)))

    def _events(self, seconds: int) -> float:
        """Spark's ``RateStreamProvider.valueAtSecond``."""
        if not self.ramp_s:
            return seconds * self.per_s
        ramp = min(seconds, self.ramp_s)
        step = self.per_s / (self.ramp_s + 1)
        return ramp * (ramp + 1) / 2 * step + (seconds - ramp) * self.per_s


@dataclass
class KafkaFeed:
    """Kafka: offsets by topic and partition; the brokers are asked for the newest ones."""

    log: Place
    jvm: Any = None
    settings: Mapping[str, str] = field(default_factory=dict)
    _admin: Any = None

    def between(self, start: Any, end: Any) -> float | None:
        begin = start if start is not None else self._first()
        return None if begin is None else _gap(begin, end)

    def _first(self) -> Any:
        """Where the query began: Spark keeps it in the checkpoint."""
        try:
            text = (self.log / "0").read_text()
            return json.loads(text[text.index("{") :])
        except (OSError, ValueError):
            return None

    def beyond(self, end: Any, at: float) -> float | None:
        if end is None or self.jvm is None:
            return None
        try:
            return _gap(end, self._newest(end))
        except Exception as error:  # a broker that does not answer, or no client on the class path
            log.debug("Kafka did not report its newest offsets: %s", error)
            return None

    def _newest(self, end: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
        """The newest offsets of the partitions in ``end``, by Kafka's own client in Spark's JVM."""
        clients = self.jvm.org.apache.kafka.clients.admin
        if self._admin is None:
            properties = self.jvm.java.util.HashMap()
            for key, value in (*POLL_TIMEOUTS.items(), *self.settings.items()):
                properties.put(key, value)
            self._admin = clients.Admin.create(properties)
        partition = self.jvm.org.apache.kafka.common.TopicPartition
        wanted = self.jvm.java.util.HashMap()
        for topic, parts in end.items():
            for part in parts:
                wanted.put(partition(topic, int(part)), clients.OffsetSpec.latest())
        offsets = self._admin.listOffsets(wanted).all().get()
        newest: dict[str, dict[str, int]] = {}
        for entry in offsets.entrySet():
            at = entry.getKey()
            newest.setdefault(at.topic(), {})[str(at.partition())] = entry.getValue().offset()
        return newest


def _gap(low: Mapping[str, Mapping[str, int]], high: Mapping[str, Mapping[str, int]]) -> float:
    """Events between two offsets of the form topic -> partition -> number.

    >>> _gap({"t": {"0": 5, "1": 7}}, {"t": {"0": 9, "1": 7, "2": 3}})
    7.0
    """
    return float(
        sum(
            max(0, n - low.get(topic, {}).get(part, 0))
            for topic, parts in high.items()
            for part, n in parts.items()
        )
    )


@dataclass
class FileFeed:
    """Files in a folder: the checkpoint lists those that batches took, the folder those that wait.

    Events are counted from parquet footers and from the lines of text; any other format is unknown,
    as is a folder that is not on a file system of this machine.
    """

    log: Place
    path: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    _counts: dict[str, float | None] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _read: int = -1

    def between(self, start: Any, end: Any) -> float | None:
        first, last = _log_offset(start), _log_offset(end)
        return self._sum(p for batch, p in self._logged(first, last) if first < batch <= last)

    def beyond(self, end: Any, at: float) -> float | None:
        if (last := _log_offset(end)) > self._read:
            self._taken |= {p for batch, p in self._logged(self._read, last)}
            self._read = last
        return self._sum(p for p in self._present() if p not in self._taken)

    def _logged(self, first: int, last: int) -> Iterator[tuple[int, str]]:
        """(log offset, path) of files that Spark's log lists after ``first`` up to ``last``. Every
        so often Spark gathers older entries in one file.
        """
        for n in range(first + 1, last + 1):
            for file in (self.log / str(n), self.log / f"{n}.compact"):
                try:
                    lines = file.read_text().splitlines()[1:]
                except OSError:
                    continue
                for line in lines:
                    entry = json.loads(line)
                    yield int(entry["batchId"]), _local(entry["path"])

    def _present(self) -> Iterator[str]:
        pattern = self.options.get("pathglobfilter", "*")
        path = os.path.abspath(_local(self.path))  # as Spark's log has it
        for root in glob.glob(path) or [path]:
            if os.path.isfile(root):
                yield root
            for folder, folders, files in os.walk(root):
                folders[:] = [f for f in folders if not f.startswith(("_", "."))]
                for name in files:
                    if not name.startswith(("_", ".")) and fnmatch.fnmatch(name, pattern):
                        yield os.path.join(folder, name)

    def _sum(self, paths: Iterator[str]) -> float | None:
        total = 0.0
        for path in paths:
            if path not in self._counts:
                self._counts[path] = self._count(path)
            if (count := self._counts[path]) is None:
                return None
            total += count
        return total

    def _count(self, path: str) -> float | None:
        try:
            if self.format == "parquet":
                return float(pq.read_metadata(path).num_rows)
            if self.format in ("text", "csv", "json") and not path.endswith(
                (".gz", ".bz2", ".zst")
            ):
                return _lines(path)
        except (OSError, ValueError):
            pass
        return None


def _lines(path: str) -> float:
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(SCANNED_BYTES)
    lines = head.count(b"\n") + (not head.endswith(b"\n") and size == len(head) > 0)
    return float(lines) if size <= len(head) else lines * size / len(head)


def _log_offset(offset: Any) -> int:
    return -1 if offset is None else int(offset["logOffset"])


def _local(path: str) -> str:
    """A path without the scheme that Spark puts before it."""
    return unquote(urlparse(path).path) if path.startswith("file:") else path


@dataclass
class CounterFeed:
    """Any other source whose offset holds one number: the events per unit of it are learned from
    finished batches. ``per_unit`` is known beforehand for a socket, whose offset counts lines.
    """

    per_unit: float | None = None
    first: float = 0.0

    def between(self, start: Any, end: Any) -> float | None:
        low, high = self.first if start is None else _number(start), _number(end)
        if low is None or high is None or self.per_unit is None:
            return None
        return max(0.0, high - low) * self.per_unit

    def beyond(self, end: Any, at: float) -> float | None:
        return None

    def learn(self, start: Any, end: Any, events: float) -> None:
        low, high = _number(start), _number(end)
        if low is not None and high is not None and high > low:
            self.per_unit = events / (high - low)


def _number(offset: Any) -> float | None:
    """The one number that an offset is, or holds.

    >>> _number(7), _number({"offset": 3}), _number({"a": 1, "b": 2}), _number("x")
    (7.0, 3.0, None, None)
    """
    if isinstance(offset, Mapping):
        return _number(next(iter(offset.values()))) if len(offset) == 1 else None
    return float(offset) if isinstance(offset, (int, float)) else None


def feeds_of(frame: DataFrame, checkpoint: Checkpoint, first: int) -> list[Feed]:
    """The feeds behind one opened source, in the order of its offsets; ``first`` is the place of
    its first one among all of the query's.
    """
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    feeds: list[Feed] = []
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        if leaf.isStreaming():
            place = checkpoint.root / "sources" / str(first + len(feeds))
            feeds.append(_feed(leaf, place, frame.sparkSession._jvm))
    return feeds


def _feed(leaf: Any, place: Place, jvm: Any) -> Feed:
    """What the offsets of one streaming relation of Spark's plan mean."""
    kind = leaf.getClass().getSimpleName()
    if kind == "StreamingRelationV2":
        options, name = leaf.extraOptions(), str(leaf.sourceName()).lower()
        if name == "rate" or name.startswith("ratestream"):
            per_s, ramp = options.get("rowsPerSecond"), options.get("rampUpTime")
            if ramp is None or str(ramp).rstrip("s").isdigit():
                return RateFeed(place, float(per_s or 1), int(str(ramp or 0).rstrip("s")))
        if "kafka" in name:
            settings = {
                str(k)[len("kafka.") :]: str(v)
                for k, v in dict(options.asCaseSensitiveMap()).items()
                if str(k).startswith("kafka.")
            }
            return KafkaFeed(place, jvm, settings)
        if "socket" in name:
            return CounterFeed(1.0, -1.0)
    elif kind == "StreamingRelation" and str(leaf.sourceName()).startswith("FileSource["):
        source = leaf.dataSource()
        options = source.options()
        path = options.get("path")
        glob_filter = options.get("pathGlobFilter")
        known = {"pathglobfilter": glob_filter.get()} if glob_filter.isDefined() else {}
        if path.isDefined():
            return FileFeed(place, str(path.get()), str(source.className()).lower(), known)
    return CounterFeed()


@dataclass(frozen=True)
class OpenSource:
    """A source of a running query with the feeds behind it."""

    name: str
    feeds: tuple[Feed, ...]


@dataclass
class Outside:
    """Events from outside that arrived at one operator: done, in the running batch, and waiting."""

    checkpoint: Checkpoint
    sources: Sequence[OpenSource]
    _sizes: dict[int, dict[str, int]] = field(default_factory=dict)
    _logged_at: float | None = None
    _rate: float | None = None

    @cached_property
    def _places(self) -> list[tuple[str, Feed]]:
        return [(s.name, f) for s in self.sources for f in s.feeds]

    def sizes(self, batch: int) -> dict[str, int | None]:
        """Events per source that a logged batch takes."""
        sizes: dict[str, int | None] = dict(self._sizes.get(batch, {}))
        if sizes:
            return sizes
        offsets = self.checkpoint.offsets(batch)
        counts: dict[str, float | None] = {}
        for (name, feed), start, end in zip(self._places, offsets.start, offsets.end, strict=False):
            events = 0.0 if end is None else feed.between(start, end)
            before = counts.get(name, 0.0)
            counts[name] = None if events is None or before is None else before + events
        return {name: None if n is None else round(n) for name, n in counts.items()}

    def counted(self, batch: int, sizes: Mapping[str, int]) -> None:
        """The running batch turned out to hold so many events per source."""
        self._sizes = {batch: dict(sizes)}

    def finished(self, batch: int, events: int) -> None:
        """Learn from a delivered batch that took ``events`` from outside."""
        logged_at, before = self.checkpoint.instant(batch), self._logged_at
        if before is not None and logged_at > before:
            self._rate = events / (logged_at - before)
        self._logged_at = logged_at
        if len(self._places) == 1 and isinstance(feed := self._places[0][1], CounterFeed):
            offsets = self.checkpoint.offsets(batch)
            feed.learn(offsets.start[0], offsets.end[0], events)

    def arrived(self, latest: Manifest, at: float) -> int | None:
        """Events that ever arrived by ``at``: exact where the feeds can say, else an estimate; None
        when there is nothing to estimate from.
        """
        done = sum(latest.consumed.get(s.name, 0) for s in self.sources)
        generated = [f.due(at) for _, f in self._places if isinstance(f, GeneratedFeed)]
        if len(generated) == len(self._places):
            return max(done, sum(generated))
        batch = self.checkpoint.last_batch()
        if batch is None:
            waiting = [feed.beyond(None, at) for _, feed in self._places]
            return done + round(sum(w or 0.0 for w in waiting))
        runs = batch > latest.batch
        running = self._running(batch) if runs else 0.0
        beyond = self._beyond(batch, at, runs)
        return None if running is None or beyond is None else done + round(running + beyond)

    def _running(self, batch: int) -> float | None:
        """Events of the batch that is not delivered yet."""
        sizes = self.sizes(batch).values()
        if None not in sizes:
            return float(sum(n or 0 for n in sizes))
        if self._rate is None or self._logged_at is None:
            return None
        return self._rate * max(0.0, self.checkpoint.instant(batch) - self._logged_at)

    def _beyond(self, batch: int, at: float, runs: bool) -> float | None:
        """Events after the last logged batch. While nothing runs, Spark would take them at once, so
        that a feed which cannot say holds none.
        """
        ends = self.checkpoint.offsets(batch).end
        waiting = [feed.beyond(end, at) for (_, feed), end in zip(self._places, ends, strict=False)]
        if None not in waiting or not runs:
            return sum(w or 0.0 for w in waiting)
        if self._rate is None:
            return None
        return self._rate * max(0.0, at - self.checkpoint.instant(batch))
