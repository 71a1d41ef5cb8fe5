"""How many events a source outside the pipeline has received, whether or not a batch took them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.streaming.query import StreamingQuery

from foretide.spark.declare.generator import Generator
from foretide.spark.declare.pipeline import Source
from foretide.spark.edge.checkpoint import offset_gap


@dataclass(frozen=True)
class SourceArrivals:
    """One source. ``started_at`` is the instant of the pipeline's first start."""

    source: Source
    started_at: float

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def total(self) -> int:
        """Events that a generated load has in all; 0 for any other source."""
        return self.source.open.timetable.total if isinstance(self.source.open, Generator) else 0

    def due(self, at: float) -> int:
        """Events of a generated load that are due by ``at``; 0 for any other source."""
        if not isinstance(self.source.open, Generator):
            return 0
        return self.source.open.due(at - self.started_at)


def lag(query: StreamingQuery | None, sources: Sequence[Source]) -> int:
    """Events that wait in sources that are not ours, as Spark last reported; 0 where it does not."""
    if query is None or all(isinstance(s.open, Generator) for s in sources):
        return 0
    progress = query.lastProgress
    own = progress.sources[: len(sources)] if progress else []
    return sum(offset_gap(s.endOffset, s.latestOffset) for s in own)
