"""What Spark reports, turned into records: pure, so no Spark is started here."""

from typing import Any

import pytest

from foretide.errors import NotReady
from foretide.spark.attach.progress import (
    Batch,
    Cluster,
    Watch,
    found_edges,
    latency,
    parsed,
    topology_of,
)

PROGRESS: dict[str, Any] = {
    "id": "ed593b13-6542-435f-830d-12323ee7f390",
    "runId": "0d8f48e3-87a1-4396-bc46-9b93fb0f3ac7",
    "name": "clean",
    "timestamp": "2026-11-15T08:00:00.500Z",
    "batchId": 7,
    "numInputRows": 120,
    "durationMs": {"addBatch": 900, "triggerExecution": 1500},
    "sources": [
        {
            "description": "KafkaV2[Subscribe[raw]]",
            "numInputRows": 120,
            "endOffset": {"raw": {"0": 60, "1": 60}, "late": {"0": 3}},
            "metrics": {"avgOffsetsBehindLatest": "4.0"},
        },
        {
            "description": "KafkaV2[Subscribe[other]]",
            "numInputRows": 0,
            "metrics": {"avgOffsetsBehindLatest": "1.5"},
        },
    ],
    "sink": {"description": "FileSink[/data/clean]", "numOutputRows": -1},
}


def batch(
    query: str = "q",
    start: float = 0.0,
    took: float = 1.0,
    rows: float = 100.0,
    behind: float | None = None,
) -> Batch:
    return Batch(query, start, took, rows, behind, ("RateStreamV2[rowsPerSecond=10]",), "NoopTable")


def test_a_progress_report_becomes_a_batch() -> None:
    found = parsed(PROGRESS)
    assert found.query == "clean"
    assert found.started_at == 1794729600.5
    assert found.ended_at == found.started_at + 1.5
    assert found.rows == 120
    assert found.behind == 3 * 4.0 + 1.5, "Spark tells the mean over partitions"
    assert parsed({**PROGRESS, "name": None}).query == "query_ed593b13"
    assert parsed({**PROGRESS, "sources": [{"description": "x", "metrics": None}]}).behind is None


def test_edges_are_found_where_one_writes_what_another_reads() -> None:
    writer = parsed(PROGRESS)
    reader = parsed({**PROGRESS, "name": "count", "sources": [{"description": "FileStreamSource[file:/data/clean]"}],
                     "sink": {"description": "NoopTable"}})  # fmt: skip
    latest = {"clean": writer, "count": reader}
    assert found_edges(latest) == {"clean": (), "count": ("clean",)}
    topology = topology_of(latest, {}, max_slots=8)
    assert topology.edges == (("clean", "count"),)
    assert topology.sources == ("clean",)
    given = topology_of({"a": batch("a"), "b": batch("b")}, {"b": ["a", "gone"]}, 4)
    assert given.edges == (("a", "b"),)


def test_latency_follows_the_cadence() -> None:
    """Uniform wait over a 2 s interval, then a batch of 1 s: from 1 to 3 s, mean 2 s; half within 2
    s.
    """
    found = latency([batch(took=1.0)], interval_s=2.0, target_s=2.0)
    assert found is not None
    assert found.mean_ms == pytest.approx(2000)
    assert found.p50_ms == pytest.approx(2000, abs=60)
    assert found.p90_ms == pytest.approx(2800, abs=60)
    assert found.within == pytest.approx(50)
    assert latency([batch(rows=0)], 2.0, None) is None


def test_a_window_holds_the_batches_that_ended_in_it() -> None:
    watch = Watch(target_s=10.0)
    for start in (0.0, 2.0, 4.0, 9.5):
        watch.add(batch("q", start, took=1.0, rows=100))
    topology = topology_of(watch.latest, {}, 8)
    first = watch.snapshot(topology, 10.0, 10.0, Cluster(2, {"q": 6.0})).samples["q"]
    assert (first.arrived, first.batches, first.batch_s, first.busy_s, first.replicas) == (
        300,
        3,
        1.0,
        6.0,
        2,
    )
    assert first.backlog == pytest.approx(300 / 10 * 0.5), "what arrived since the last batch began"
    second = watch.snapshot(topology, 20.0, 10.0, Cluster(2, {})).samples["q"]
    assert (second.arrived, second.batches, second.busy_s) == (100, 1, None)
    quiet = watch.snapshot(topology, 30.0, 10.0, Cluster(2, {})).samples["q"]
    assert (quiet.arrived, quiet.batch_s) == (0, None)


def test_task_seconds_wait_for_the_events_of_their_batch() -> None:
    """A batch that outlasts a window: its tasks end before Spark reports it."""
    watch = Watch()
    watch.add(batch("q", 0.0, took=1.0, rows=0))
    topology = topology_of(watch.latest, {}, 8)
    assert watch.snapshot(topology, 10.0, 10.0, Cluster(2, {"q": 5.0})).samples["q"].busy_s == 0.0
    watch.add(batch("q", 1.0, took=14.0, rows=100))
    assert watch.snapshot(topology, 20.0, 10.0, Cluster(2, {"q": 2.0})).samples["q"].busy_s == 7.0


def test_a_query_that_ended_is_forgotten() -> None:
    watch = Watch()
    watch.add(batch("a"))
    watch.add(batch("b", behind=7.0))
    both = topology_of(watch.latest, {}, 8)
    assert watch.snapshot(both, 5.0, 5.0, Cluster(1, {})).samples["b"].backlog == 7.0
    watch.forget("b")
    with pytest.raises(NotReady, match="no batch of b"):
        watch.snapshot(both, 10.0, 5.0, Cluster(1, {}))


def test_a_query_at_work_that_has_not_ended_a_batch_is_waited_for() -> None:
    """Without it in the sum, the executors it works on would look idle."""
    watch = Watch()
    watch.add(batch("light"))
    topology = topology_of(watch.latest, {}, 8)
    with pytest.raises(NotReady, match="no batch of heavy was reported yet: executors stay"):
        watch.snapshot(topology, 5.0, 5.0, Cluster(2, {"light": 0.1, "heavy": 4.0}))
    watch.add(batch("heavy"))
    assert set(
        watch.snapshot(
            topology_of(watch.latest, {}, 8), 10.0, 5.0, Cluster(2, {"light": 0.1, "heavy": 4.0})
        ).samples
    ) == {
        "light",
        "heavy",
    }
