"""The squared variation of the times between arrivals at an operator.

At a source events arrive one by one, at their stamps; behind an edge as many at once as a batch of
the producer delivered: n events together, every I seconds, have a squared variation of n - 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LEAST = 10
"""Gaps below which nothing is said about their variation."""


@dataclass(frozen=True)
class Gaps:
    """How many times between arrivals, their sum and the sum of their squares, in seconds;
    ``last_at`` is the last arrival.
    """

    count: int = 0
    total_s: float = 0.0
    squares: float = 0.0
    last_at: float | None = None


NO_GAPS = Gaps()


def gaps(arrivals: Iterable[tuple[float, int]], last_at: float | None) -> Gaps:
    """Gaps of arrivals (instant, events), the first one since ``last_at``.

    >>> gaps([(1.0, 1), (3.0, 2)], last_at=None)
    Gaps(count=2, total_s=2.0, squares=4.0, last_at=3.0)
    """
    count, total_s, squares = 0, 0.0, 0.0
    for at, events in sorted(arrivals):
        if events <= 0:
            continue
        if last_at is not None:
            gap_s = max(0.0, at - last_at)
            count, total_s, squares = count + 1, total_s + gap_s, squares + gap_s * gap_s
        count += events - 1
        last_at = at if last_at is None else max(at, last_at)
    return Gaps(count, total_s, squares, last_at)


def scv(parts: Sequence[Gaps]) -> float | None:
    """Variance over squared mean of all gaps; None below ``LEAST`` of them.

    >>> scv([Gaps(20, 10.0, 10.0)])
    1.0
    """
    n, total_s = sum(p.count for p in parts), sum(p.total_s for p in parts)
    if n < LEAST or total_s <= 0:
        return None
    mean = total_s / n
    return max(0.0, sum(p.squares for p in parts) / n / mean**2 - 1.0)
