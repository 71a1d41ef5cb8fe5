"""Arrivals at a query's sources over time, from what its progress reports say.

Spark reports a micro-batch when it has ended, so counting events then reads a steady load as
bursts. What a report does say exactly is how far its sources had come when the batch was *planned*:
Kafka's newest offsets, and for every other source the events of the batch itself, which came
between the planning of the last batch and that of this one. Each report is therefore one point
(instant, events so far) of a cumulative curve. Between points the curve is linear; after the last
one it goes on at the last known rate, until the source turns out to be silent.

Pure: no Spark, no clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from foretide import quantities
from foretide.model import Latency
from foretide.spark.attach.progress import BatchReport, Offsets, SourceReport

KEPT = 400
"""Points per source."""
RATE_SPAN_S = 2.0
"""The rate that holds after the last point is taken over at least so many seconds."""


class ArrivalCurve:
    """Events that had come to one source, as points (instant, events so far).

    >>> curve = ArrivalCurve()
    >>> for at, events in ((0.0, 0.0), (4.0, 240.0), (6.0, 360.0)):
    ...     curve.add(at, events)
    >>> curve.at(2.0), curve.at(10.0), curve.when(240.0)
    (120.0, 600.0, 4.0)
    """

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=KEPT)
        self._counts: deque[float] = deque(maxlen=KEPT)

    def __len__(self) -> int:
        return len(self._times)

    @property
    def last(self) -> tuple[float, float]:
        return self._times[-1], self._counts[-1]

    def add(self, at: float, count: float) -> None:
        """A point after all others; one that is older, or below what had come already, is not
        taken.
        """
        if self._times and (at <= self._times[-1] or count < self._counts[-1]):
            return
        self._times.append(at)
        self._counts.append(count)

    def rate(self) -> float:
        """Events/s at the end of the curve, over at least ``RATE_SPAN_S``."""
        end = len(self._times) - 1
        start = end
        while start > 0 and self._times[end] - self._times[start] < RATE_SPAN_S:
            start -= 1
        span_s = self._times[end] - self._times[start] if end > 0 else 0.0
        return (self._counts[end] - self._counts[start]) / span_s if span_s > 0 else 0.0

    def at(self, at: float) -> float:
        """Events so far at an instant: between points by interpolation, after the last one at the
        last known rate, before the first one the first point's.
        """
        if at >= self._times[-1]:
            return self._counts[-1] + (at - self._times[-1]) * self.rate()
        return _interpolated(self._times, self._counts, at)

    def when(self, count: float) -> float:
        """The instant at which so many events had come, the inverse of ``at``; events that came
        before the first point are taken to have come at it.
        """
        if count > self._counts[-1]:
            rate = self.rate()
            return self._times[-1] + ((count - self._counts[-1]) / rate if rate else 0.0)
        return _interpolated(self._counts, self._times, count)


def _interpolated(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    if x <= xs[0]:
        return ys[0]
    right = min(bisect_right(xs, x), len(xs) - 1)
    left = right - 1
    width = xs[right] - xs[left]
    return ys[right] if width <= 0 else ys[left] + (ys[right] - ys[left]) * (x - xs[left]) / width


class _OffsetTotal:
    """Offsets of all partitions as one count that never falls: a partition that went away keeps its
    last offset, a topic that was created anew goes on from it.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._lost = 0

    def add(self, offsets: Offsets) -> float:
        """The count at the newest offsets."""
        for partition, offset in offsets.items():
            before = self._last.get(partition, offset)
            self._lost += max(0, before - offset)
            self._last[partition] = offset
        return self.position(offsets)

    def position(self, offsets: Offsets) -> float:
        """The count at offsets that may lie behind the newest ones."""
        return float(sum({**self._last, **offsets}.values()) + self._lost)


class _SourceArrivals:
    """The curve of one source, and how far along it the ended batches have come."""

    def __init__(self) -> None:
        self.curve = ArrivalCurve()
        self.done = 0.0
        self._events = 0.0
        self._offsets = _OffsetTotal()

    def add(self, batch: BatchReport, source: SourceReport) -> tuple[float, float]:
        """Take in one report; the range of the curve's counts that the batch worked off."""
        if source.latest is not None and source.end is not None:
            self.polled(batch.planned_at, source.latest)
            self.done = self._offsets.position(source.end)
        else:
            self._events += source.events
            self.curve.add(batch.planned_at, self._events)
            self.done = self._events
        return self.done - source.events, self.done

    def polled(self, at: float, offsets: Offsets) -> None:
        """The newest offsets at an instant; those of a report may be older than the last poll."""
        if not len(self.curve) or at > self.curve.last[0]:
            self.curve.add(at, self._offsets.add(offsets))

    def silent(self, at: float) -> None:
        self.curve.add(at, self.curve.last[1])


class QueryArrivals:
    """Arrivals of one run of a query over all its sources."""

    def __init__(self) -> None:
        self._sources: list[_SourceArrivals] = []

    def add(self, batch: BatchReport) -> list[tuple[float, float]]:
        """Take in one report. The ages of the batch's events when it ended, as (seconds, events):
        each event's arrival is where the curve passed its count.
        """
        while len(self._sources) < len(batch.sources):
            self._sources.append(_SourceArrivals())
        ages: list[tuple[float, float]] = []
        for arrivals, source in zip(self._sources, batch.sources, strict=False):
            start, end = arrivals.add(batch, source)
            if end > start:
                ages += _ages(arrivals.curve, start, end, batch.ended_at)
        return ages

    def polled(self, at: float, offsets: Sequence[Offsets]) -> None:
        """The newest offsets of every source, asked for between two reports."""
        if len(offsets) == len(self._sources):
            for arrivals, latest in zip(self._sources, offsets, strict=True):
                arrivals.polled(at, latest)

    def silent(self, at: float) -> None:
        """Spark says that nothing waits: nothing came since the last batch was planned."""
        for arrivals in self._sources:
            arrivals.silent(at)

    @property
    def known(self) -> bool:
        """Whether a rate is known: every source has two points."""
        return bool(self._sources) and all(len(s.curve) > 1 for s in self._sources)

    def between(self, start: float, end: float) -> float:
        """Events that came from ``start`` to ``end``."""
        return sum(max(0.0, s.curve.at(end) - s.curve.at(start)) for s in self._sources)

    def backlog(self, now: float) -> float:
        """Events that have come and whose batch has not ended, the running batch's included."""
        return sum(max(0.0, s.curve.at(now) - s.done) for s in self._sources)


def _ages(
    curve: ArrivalCurve, start: float, end: float, ended_at: float, parts: int = 20
) -> list[tuple[float, float]]:
    width = (end - start) / parts
    return [
        (max(0.0, ended_at - curve.when(start + (part + 0.5) * width)), width)
        for part in range(parts)
    ]


def latency_of(
    ages: Sequence[tuple[float, float]], target_s: float | None, mergeable: bool = False
) -> Latency | None:
    """Figures of (age in seconds, events) pairs; None without events. With ``mergeable`` the record
    holds the distribution too.
    """
    if not ages:
        return None
    ages_s, events = np.array(ages).T
    return quantities.latency(ages_s, events, target_s, mergeable=mergeable)


def trigger_interval_s(batches: Sequence[BatchReport]) -> float | None:
    """Seconds between two batches that a query's trigger asks for, from batches that ended before
    the next one began; 0 when none ever waited: the query starts each batch right after the last.

    The least interval in which a query waited counts: a trigger without new events is passed over.
    """
    gaps = [(b.started_at - a.started_at, a.duration_s) for a, b in pairwise(batches)]
    if not gaps:
        return None
    waited = sorted(gap for gap, took in gaps if gap > took + 0.1)
    return waited[len(waited) // 10] if waited else 0.0
