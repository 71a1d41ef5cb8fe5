"""What Spark reports of each micro-batch, as records: the step from a progress report's JSON to a
``BatchReport``, and the graph of queries that follows from their sources and sinks.

Pure: no Spark, no clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foretide.topology import Operator, Topology

Offsets = Mapping[str, int]
"""Offsets by partition, named ``topic/partition``."""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """One source in one micro-batch. ``latest`` are the newest offsets when the batch was planned,
    ``end`` those that it took in; None where the source has no offsets that count events.
    """

    description: str
    events: float
    end: Offsets | None = None
    latest: Offsets | None = None

    @property
    def left(self) -> float | None:
        """Events that were there when the batch was planned and that it did not take in."""
        if self.end is None or self.latest is None:
            return None
        return float(sum(max(0, n - self.end.get(p, n)) for p, n in self.latest.items()))


@dataclass(frozen=True, slots=True)
class BatchReport:
    """One micro-batch of a query as Spark reports it when the batch has ended. ``planned_at`` is
    when its sources were asked for their newest offsets. ``ran`` is False for the report of a
    trigger that found nothing to do.
    """

    query: str
    run_id: str
    batch_id: int
    started_at: float
    planned_at: float
    duration_s: float
    events: float
    sources: tuple[SourceReport, ...]
    sink: str
    ran: bool = True
    state_rows: float | None = None
    state_bytes: float | None = None
    watermark_at: float | None = None

    @property
    def ended_at(self) -> float:
        return self.started_at + self.duration_s

    @property
    def left(self) -> float | None:
        """Events left waiting over all sources that report it; None when none does."""
        known = [left for s in self.sources if (left := s.left) is not None]
        return sum(known) if known else None

    @property
    def partitions(self) -> int | None:
        """Partitions of all sources together; None unless every source has some."""
        counts = [len(s.latest or s.end or ()) for s in self.sources]
        return sum(counts) if counts and all(counts) else None


def parsed(progress: Mapping[str, Any]) -> BatchReport:
    """A batch from Spark's progress report (its JSON form). A query without a name goes by its
    id.
    """
    duration_ms = progress["durationMs"]
    started_at = _instant(progress["timestamp"])
    states = progress.get("stateOperators") or ()
    watermark = (progress.get("eventTime") or {}).get("watermark")
    return BatchReport(
        query=query_name(progress.get("name"), progress["id"]),
        run_id=str(progress.get("runId", "")),
        batch_id=int(progress.get("batchId", -1)),
        started_at=started_at,
        planned_at=started_at + duration_ms.get("latestOffset", 0) / 1e3,
        duration_s=duration_ms.get("triggerExecution", 0) / 1e3,
        events=float(progress["numInputRows"]),
        sources=tuple(_source(s) for s in progress["sources"]),
        sink=progress["sink"]["description"],
        ran="addBatch" in duration_ms or progress["numInputRows"] > 0,
        state_rows=float(sum(s["numRowsTotal"] for s in states)) if states else None,
        state_bytes=float(sum(s["memoryUsedBytes"] for s in states)) if states else None,
        watermark_at=_instant(watermark) if watermark else None,
    )


def _instant(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _source(source: Mapping[str, Any]) -> SourceReport:
    return SourceReport(
        source["description"],
        float(source.get("numInputRows", 0)),
        partition_offsets(source.get("endOffset")),
        partition_offsets(source.get("latestOffset")),
    )


def partition_offsets(offset: Any) -> dict[str, int] | None:
    """Offsets that count events, by partition: Kafka's and those of the same shape. Other offsets
    (a file log's number, a table's version) are None.

    >>> partition_offsets({"raw": {"0": 60, "1": 7}}), partition_offsets({"logOffset": 3})
    ({'raw/0': 60, 'raw/1': 7}, None)
    """
    if not isinstance(offset, dict) or not offset:
        return None
    flat = {}
    for topic, partitions in offset.items():
        if not isinstance(partitions, dict):
            return None
        for partition, value in partitions.items():
            if not isinstance(value, int) or isinstance(value, bool):
                return None
            flat[f"{topic}/{partition}"] = value
    return flat or None


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
    """What a source or sink reads or writes, where its description names it: the text in its
    brackets, without a file scheme.

    >>> place_of("FileStreamSource[file:/data/clean]"), place_of("FileSink[/data/clean]")
    ('/data/clean', '/data/clean')
    >>> place_of("NoopTable")
    """
    match = re.search(r"\[([^\]=]+)\]", description)
    return re.sub(r"^file:/*", "/", match.group(1)).rstrip("/") if match else None


def edges_between(latest: Mapping[str, BatchReport]) -> dict[str, tuple[str, ...]]:
    """Consumer -> producers, where a sink of one query is a source of another."""
    writers = {
        place: name for name, batch in latest.items() if (place := place_of(batch.sink)) is not None
    }
    return {
        name: tuple(
            dict.fromkeys(
                writers[place]
                for s in batch.sources
                if (place := place_of(s.description)) in writers and writers[place] != name
            )
        )
        for name, batch in latest.items()
    }


def topology_of(
    latest: Mapping[str, BatchReport], edges: Mapping[str, Sequence[str]], max_slots: int
) -> Topology:
    """The watched queries as a graph: the edges of the settings, else those that sources and sinks
    show.
    """
    inputs = {**edges_between(latest), **{c: tuple(p) for c, p in edges.items()}}
    known = {c: tuple(p for p in inputs.get(c, ()) if p in latest) for c in latest}
    return Topology(
        tuple(
            Operator(n, known[n], max_replicas=max(1, max_slots), source=not known[n])
            for n in sorted(latest)
        )
    )
