"""Watching somebody's streaming queries: what Spark reports of each micro-batch, as samples.

Owns the step from query progress to records. Nothing in the watched queries changes, so some
figures are estimates, and which ones is said here: a source that does not tell how far behind it is
has a backlog of what arrived since its last batch began, and an event's latency is taken from the
cadence: it waits up to one batch interval and then for its batch to end.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from foretide import quantities
from foretide.errors import NotReady
from foretide.model import Host, Latency, Sample, Snapshot
from foretide.topology import Operator, Topology


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch of a query: when it started, how long it took, how many events it took in,
    and how many it left waiting (None when no source tells)."""

    query: str
    started_at: float
    duration_s: float
    rows: float
    behind: float | None
    sources: tuple[str, ...]
    sink: str

    @property
    def ended_at(self) -> float:
        return self.started_at + self.duration_s


def parsed(progress: Mapping[str, Any]) -> Batch:
    """A batch from Spark's progress report (its JSON form). A query without a name goes by its id."""
    lags = [lag for s in progress["sources"] if (lag := _lag(s)) is not None]
    return Batch(
        query=query_name(progress.get("name"), progress["id"]),
        started_at=datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp(),
        duration_s=progress["durationMs"].get("triggerExecution", 0) / 1e3,
        rows=float(progress["numInputRows"]),
        behind=sum(lags) if lags else None,
        sources=tuple(s["description"] for s in progress["sources"]),
        sink=progress["sink"]["description"],
    )


def _lag(source: Mapping[str, Any]) -> float | None:
    """Events that a source left waiting, where it tells: Spark gives the mean over its partitions,
    which its offsets name.
    """
    mean, end = (source.get("metrics") or {}).get("avgOffsetsBehindLatest"), source.get("endOffset")
    if mean is None:
        return None
    partitions = (
        sum(len(p) for p in end.values() if isinstance(p, dict)) if isinstance(end, dict) else 0
    )
    return float(mean) * max(1, partitions)


def query_name(name: str | None, identity: str) -> str:
    """A name that an operator may have.

    >>> query_name("my query", "ed593b13-6542"), query_name(None, "ed593b13-6542")
    ('my_query', 'query_ed593b13')
    """
    if not name:
        return f"query_{identity[:8]}"
    clean = re.sub(r"[^\w.-]", "_", name)
    return clean if re.match(r"[^\W\d]", clean) else f"q_{clean}"


def place_of(description: str) -> str | None:
    """What a source or sink reads or writes, when its description says: the text in its brackets,
    without a file scheme.

    >>> place_of("FileStreamSource[file:/data/clean]"), place_of("FileSink[/data/clean]"), place_of("NoopTable")
    ('/data/clean', '/data/clean', None)
    """
    found = re.search(r"\[([^\]=]+)\]", description)
    return re.sub(r"^file:/*", "/", found.group(1)).rstrip("/") if found else None


def found_edges(latest: Mapping[str, Batch]) -> dict[str, tuple[str, ...]]:
    """consumer -> producers, where a sink of one query is a source of another."""
    writers = {
        place: name for name, batch in latest.items() if (place := place_of(batch.sink)) is not None
    }
    return {
        name: tuple(
            dict.fromkeys(
                writers[p]
                for s in batch.sources
                if (p := place_of(s)) in writers and writers[p] != name
            )
        )
        for name, batch in latest.items()
    }


def topology_of(
    latest: Mapping[str, Batch], edges: Mapping[str, Sequence[str]], max_slots: int
) -> Topology:
    """The watched queries as a graph: edges that were given, else those that were found."""
    inputs = {**found_edges(latest), **{c: tuple(p) for c, p in edges.items()}}
    known = {c: tuple(p for p in inputs.get(c, ()) if p in latest) for c in latest}
    return Topology(
        tuple(
            Operator(n, known[n], max_replicas=max(1, max_slots), source=not known[n])
            for n in sorted(latest)
        )
    )


def latency(batches: Sequence[Batch], interval_s: float, target_s: float | None) -> Latency | None:
    """Estimated from the cadence: an event of a batch waited a uniform share of the interval, then
    for the batch to end.
    """
    steps = (np.arange(20) + 0.5) / 20 * interval_s
    busy = [b for b in batches if b.rows]
    if not busy:
        return None
    ages_s = np.concatenate([steps + b.duration_s for b in busy])
    weights = np.repeat([b.rows / 20 for b in busy], 20)
    return quantities.latency(ages_s, weights, target_s)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the application has: slots over all executors, how busy each executor is, task seconds
    in this window of every query that is at work, the graph's and others."""

    slots: int
    busy_s: Mapping[str, float | None]
    hosts: tuple[Host, ...] | None = None


class Watch:
    """Collects batches as Spark reports them (any thread) and gives them out per window."""

    def __init__(self, target_s: float | None = None) -> None:
        self.target_s = target_s
        self.latest: dict[str, Batch] = {}
        self._batches: list[Batch] = []
        self._carried_s: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, batch: Batch) -> None:
        with self._lock:
            self._batches.append(batch)
            self.latest[batch.query] = batch

    def begin(self, now: float) -> None:
        """Windows count from now: what ended before belongs to none."""
        with self._lock:
            self._batches = [b for b in self._batches if b.ended_at > now]
            self._carried_s.clear()

    def forget(self, query: str) -> None:
        """The query ended."""
        with self._lock:
            self.latest.pop(query, None)
            self._batches = [b for b in self._batches if b.query != query]

    def snapshot(
        self, topology: Topology, now: float, window_s: float, cluster: Cluster
    ) -> Snapshot:
        """The window that ends now. Batches that ended in it are taken out."""
        with self._lock:
            ended = [b for b in self._batches if b.ended_at <= now]
            self._batches = [b for b in self._batches if b.ended_at > now]
            latest = dict(self.latest)
        missing = [n for n in dict.fromkeys((*topology.names, *cluster.busy_s)) if n not in latest]
        if missing:  # executors given back without them in the sum could be the ones they work on
            raise NotReady(
                f"no batch of {', '.join(missing)} was reported yet: executors stay until its "
                "first one ends"
            )
        samples = {}
        for name in topology.names:
            mine = [b for b in ended if b.query == name]
            rows, last = sum(b.rows for b in mine), latest[name]
            samples[name] = Sample(
                arrived=rows,
                processed=rows,
                backlog=rows / window_s * max(0.0, now - last.started_at)
                if last.behind is None
                else last.behind,
                replicas=cluster.slots,
                busy_s=self._busy_s(name, cluster.busy_s.get(name), rows),
                offered=rows if name in topology.sources else None,
                latency=latency(mine, window_s / max(1, len(mine)), self.target_s),
                batches=float(len(mine)),
                batch_s=sum(b.duration_s for b in mine) / len(mine) if mine else None,
            )
        leaving = [b for b in ended if b.query in topology.sinks]
        return Snapshot(
            now,
            window_s,
            samples,
            cluster.hosts,
            latency(leaving, window_s / max(1, len(leaving)), self.target_s),
        )

    def _busy_s(self, name: str, now_s: float | None, rows: float) -> float | None:
        """Task seconds belong to the window in which their batch's events are counted: until then
        they are carried along.
        """
        total = self._carried_s.pop(name, 0.0) + (now_s or 0.0)
        if rows == 0:
            self._carried_s[name] = total
            return 0.0
        return total or None
