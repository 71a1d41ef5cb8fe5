"""Tree completion: an input is done when all that came of it is done (DRS, section II-A).

Events are followed by their stamp (``worker.traces``). Of a followed input this module knows how
many events that came of it are still under way: one at first, plus what operators gave for it, less
what they took. When none is left its tree is complete; loops and splits need no special care. The
latency end to end counts every event that left by itself; completion counts an input once, with the
last of what came of it. Pure bookkeeping; it knows no Spark and no clock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

import numpy as np

from foretide.model import Array, Latency
from foretide.quantities import latency
from foretide.spark.worker.traces import Trace

MOST = 20_000
"""Inputs under way that are followed at most; the oldest are forgotten beyond that."""


class Trees:
    """``readers`` says of every operator how many operators read each of its outputs; ``sources``
    are the operators that inputs come to.
    """

    def __init__(
        self, readers: Mapping[str, Mapping[str | None, int]], sources: Iterable[str]
    ) -> None:
        self._readers = readers
        self._sources = frozenset(sources)
        self._open: dict[float, int] = {}
        self._done: list[float] = []
        self._lock = threading.Lock()

    def delivered(self, name: str, traces: Mapping[float, Trace], now: float) -> None:
        """An operator delivered a batch that held these followed stamps."""
        readers = self._readers[name]
        with self._lock:
            for stamp, trace in traces.items():
                known = self._open.pop(stamp, 1 if name in self._sources else None)
                if known is None:  # it began before this start of the pipeline
                    continue
                given = sum(n * readers.get(output, 0) for output, n in trace.given.items())
                left = known + given - trace.taken
                if left > 0:
                    self._open[stamp] = left
                elif left == 0:
                    self._done.append(max(0.0, now - stamp))
                # below 0: several inputs share the stamp, and none of them can be told apart
            while len(self._open) > MOST:
                del self._open[next(iter(self._open))]

    def take(self, target_s: float | None = None) -> Latency | None:
        """Completion times of the inputs that were completed since the last call."""
        with self._lock:
            done, self._done = self._done, []
        if not done:
            return None
        ages: Array = np.array(done)
        return latency(ages, np.ones_like(ages), target_s, float(ages.mean()), True)


def merged(traces: Iterable[Mapping[float, Trace]]) -> dict[float, Trace]:
    """The counts of several tasks of one batch together."""
    total: dict[float, Trace] = {}
    for part in traces:
        for stamp, trace in part.items():
            into = total.setdefault(stamp, Trace())
            into.taken += trace.taken
            for output, n in trace.given.items():
                into.given[output] = into.given.get(output, 0) + n
    return total
