"""Replicas that add nothing: how many an operator can use, and which limit says so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from foretide.model import Sample
from foretide.topology import Operator

WINDOWS = 3
"""Busy windows with as many replicas before their throughput counts."""


def most_useful(operator: Operator, samples: Sequence[Sample]) -> tuple[int, str]:
    """The most replicas worth asking for, and the name of the limit.

    The operator's own maximum; what the environment reports (partitions, slots of a source); and
    what was measured: where more replicas did not raise the throughput of a queue that never ran
    empty, the fewer are enough.
    """
    most, why = operator.max_replicas, "its maximum"
    reported = next((s.max_parallelism for s in reversed(samples) if s.max_parallelism), None)
    if reported is not None and reported < most:
        most, why = reported, "its parallelism"
    measured = speed_limit(samples)
    if measured is not None and measured < most:
        most, why = measured, "its measured throughput"
    return max(most, operator.min_replicas), why


def speed_limit(samples: Sequence[Sample]) -> int | None:
    """Replicas beyond which the throughput of a saturated operator no longer rose by 2 %; None
    while nothing shows that.

    >>> slow = [Sample(90, 50, 200, r) for r in (2, 2, 2, 4, 4, 4)]
    >>> speed_limit(slow), speed_limit(slow[:3])
    (2, None)
    """
    by_replicas: dict[int, list[float]] = defaultdict(list)
    for s in samples:
        if s.replicas > 0 and s.processed > 0 and s.backlog >= s.processed:
            by_replicas[s.replicas].append(s.processed)
    rates = sorted((r, sum(v) / len(v)) for r, v in by_replicas.items() if len(v) >= WINDOWS)
    for i, (fewer, rate) in enumerate(rates[:-1]):
        if max(more for _, more in rates[i + 1 :]) <= rate * 1.02:
            return fewer
    return None
