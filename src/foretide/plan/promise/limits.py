"""Replicas that add nothing: how many an operator can use, and which limit says so."""

from __future__ import annotations

from foretide.history import History
from foretide.speedup import ceiling
from foretide.topology import Operator

MAXIMUM = "its maximum"


def most_useful(operator: Operator, history: History, wanted: float) -> tuple[int, str]:
    """The most replicas worth asking for, and the name of the limit. The past is searched only
    where more are wanted than run, or where a queue is long.

    The operator's own maximum; what the environment reports (partitions, slots of a source); and
    what was measured: where more replicas did not raise the throughput of a queue that never ran
    empty, the fewer are enough (``foretide.speedup``).
    """
    most, why = operator.max_replicas, MAXIMUM
    last = history.latest.samples[operator.name]
    more = wanted > last.replicas or last.backlog >= max(last.processed, 1.0)
    samples = list(history.samples(operator.name, 60 if more else 1))
    reported = next((s.max_parallelism for s in reversed(samples) if s.max_parallelism), None)
    if reported is not None and reported < most:
        most, why = reported, "its parallelism"
    measured = ceiling(history, operator.name) if more else None
    if measured is not None and measured.best.replicas < most:
        most, why = measured.best.replicas, "its measured throughput"
    return max(most, operator.min_replicas), why
