"""Progress reports of queries that never ran, for tests of ``attach``."""

from collections.abc import Callable, Iterator

from foretide.spark.attach.progress import BatchReport, SourceReport


def report(
    query: str = "q",
    start: float = 0.0,
    took: float = 1.0,
    events: float = 100.0,
    *,
    batch_id: int = 0,
    run_id: str = "run-1",
    latest: int | None = None,
    end: int | None = None,
    partitions: int = 2,
) -> BatchReport:
    """A batch of one source; with ``latest`` and ``end`` a Kafka source with these totals."""
    source = SourceReport("RateStreamV2[rowsPerSecond=10]", events)
    if latest is not None and end is not None:
        source = SourceReport(
            "KafkaV2[Subscribe[t]]", events, offsets(end, partitions), offsets(latest, partitions)
        )
    return BatchReport(
        query, run_id, batch_id, start, start, took, events, (source,), "NoopTable", events > 0
    )


def offsets(total: int, partitions: int = 2) -> dict[str, int]:
    share, rest = divmod(total, partitions)
    return {f"t/{p}": share + (p < rest) for p in range(partitions)}


def kafka_query(
    arrived: Callable[[float], float],
    batch_s: Callable[[float], float],
    trigger_s: float,
    until_s: float,
    limit: float = float("inf"),
) -> Iterator[BatchReport]:
    """The reports of a query that reads ``arrived(t)`` events from Kafka: a batch at every trigger,
    later when the last one is not over, of at most ``limit`` events.
    """
    start, end, number = 0.0, 0, 0
    while start < until_s:
        latest = int(arrived(start))
        events = min(latest - end, limit)
        took = batch_s(events)
        end += int(events)
        yield report("q", start, took, events, batch_id=number, latest=latest, end=end)
        number += 1
        start = max(start + trigger_s, start + took)
