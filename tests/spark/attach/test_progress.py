"""What Spark reports, turned into records: pure, so no Spark is started here."""

from typing import Any

import pytest
from reports import report

from foretide.spark.attach.progress import edges_between, parsed, topology_of

PROGRESS: dict[str, Any] = {
    "id": "ed593b13-6542-435f-830d-12323ee7f390",
    "runId": "0d8f48e3-87a1-4396-bc46-9b93fb0f3ac7",
    "name": "clean",
    "timestamp": "2026-11-15T08:00:00.500Z",
    "batchId": 7,
    "numInputRows": 120,
    "durationMs": {"addBatch": 900, "latestOffset": 20, "triggerExecution": 1500},
    "sources": [
        {
            "description": "KafkaV2[Subscribe[raw]]",
            "numInputRows": 120,
            "startOffset": {"raw": {"0": 0, "1": 0}},
            "endOffset": {"raw": {"0": 60, "1": 60}},
            "latestOffset": {"raw": {"0": 64, "1": 68}},
        },
        {
            "description": "FileStreamSource[file:/data/in]",
            "numInputRows": 0,
            "endOffset": {"logOffset": 3},
            "latestOffset": None,
        },
    ],
    "sink": {"description": "FileSink[/data/clean]", "numOutputRows": -1},
}


def test_a_progress_report_becomes_a_batch() -> None:
    batch = parsed(PROGRESS)
    assert (batch.query, batch.batch_id, batch.events) == ("clean", 7, 120)
    assert batch.started_at == 1794729600.5
    assert batch.planned_at == pytest.approx(batch.started_at + 0.02)
    assert batch.ended_at == batch.started_at + 1.5
    assert batch.left == 4 + 8
    assert batch.partitions is None, "the file source has none that are known"
    assert parsed({**PROGRESS, "sources": PROGRESS["sources"][:1]}).partitions == 2
    assert parsed({**PROGRESS, "name": None}).query == "query_ed593b13"
    assert parsed({**PROGRESS, "sources": [{"description": "x"}]}).left is None


def test_state_and_watermark_are_read_where_a_query_has_them() -> None:
    stateless = parsed(PROGRESS)
    assert (stateless.state_rows, stateless.state_bytes, stateless.watermark_at) == (None,) * 3
    states = [
        {"numRowsTotal": 3, "memoryUsedBytes": 100},
        {"numRowsTotal": 4, "memoryUsedBytes": 20},
    ]
    stateful = parsed(
        {
            **PROGRESS,
            "stateOperators": states,
            "eventTime": {"watermark": "1970-01-01T00:01:00.500Z"},
        }
    )
    assert (stateful.state_rows, stateful.state_bytes) == (7, 120)
    assert stateful.watermark_at == 60.5


def test_a_trigger_without_events_is_no_batch() -> None:
    idle = {**PROGRESS, "numInputRows": 0, "durationMs": {"latestOffset": 1, "triggerExecution": 1}}
    assert parsed(PROGRESS).ran
    assert not parsed(idle).ran


def test_an_edge_is_where_one_query_writes_what_another_reads() -> None:
    writer = parsed(PROGRESS)
    reader = parsed(
        {
            **PROGRESS,
            "name": "count",
            "sources": [{"description": "FileStreamSource[file:/data/clean]"}],
            "sink": {"description": "NoopTable"},
        }
    )
    latest = {"clean": writer, "count": reader}
    assert edges_between(latest) == {"clean": (), "count": ("clean",)}
    topology = topology_of(latest, {}, max_slots=8)
    assert topology.edges == (("clean", "count"),)
    assert topology.sources == ("clean",)
    declared = topology_of({"a": report("a"), "b": report("b")}, {"b": ["a", "gone"]}, 4)
    assert declared.edges == (("a", "b"),)
