"""Events that are too old or too many, in tasks without Spark: dead letters, and counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from foretide.errors import InvalidConfig
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.worker.batches import run_batches
from foretide.spark.worker.meter import Report
from foretide.spark.worker.tasks import run_events
from foretide.spark.worker.work import EventFailed, Work

NOW = 1000.0
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("_at", pa.float64()),
        ("_operator", pa.string()),
        ("_error", pa.string()),
        ("_event", pa.string()),
    ]
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The task's wall clock: it stands still unless a function moves it."""
    now = [NOW]
    monkeypatch.setattr("foretide.spark.worker.tasks.time.time", lambda: now[0])
    return now


def batch(*ages_s: float) -> pa.RecordBatch:
    stamps = [NOW - age for age in ages_s]
    return pa.RecordBatch.from_arrays(
        [pa.array(range(len(ages_s))), pa.array(stamps)], ["id", "_at"]
    )


def ran(
    body: Callable[..., Any], function: Callable[..., Any], given: pa.RecordBatch, **settings: Any
) -> tuple[Report, list[int], list[tuple[int, str]]]:
    """The report, the ids that came through, and those of the dead letters with their reasons."""
    reports: dict[int, Report] = {}
    work = Work("op", function, SCHEMA, {None: frozenset({"id"})}, **settings)
    rows = [r for b in body(work, reports.update)(iter([given])) for r in b.to_pylist()]
    alive = [r["id"] for r in rows if r["_error"] is None]
    dead = [(json.loads(r["_event"])["id"], r["_error"]) for r in rows if r["_error"] is not None]
    return reports[0], alive, dead


def same(event: Any) -> Any:
    return event


@pytest.mark.parametrize("body", [run_events, run_batches])
def test_an_event_older_than_the_timeout_is_a_dead_letter(body: Any, clock: list[float]) -> None:
    report, alive, dead = ran(body, same, batch(31.0, 5.0, 29.9, 300.0), timeout_s=30.0)
    assert alive == [1, 2]
    assert dead == [(0, "Dropped: older than 30 s"), (3, "Dropped: older than 30 s")]
    assert (report.processed, report.late, report.diverted) == (2, 2, 2)
    assert sorted(report.stamps) == [NOW - 29.9, NOW - 5.0], "latency is that of events that left"


def test_an_event_that_grows_too_old_while_others_are_worked_on(clock: list[float]) -> None:
    def slow(event: dict[str, Any]) -> dict[str, Any]:
        clock[0] += 4.0
        return event

    report, alive, dead = ran(run_events, slow, batch(20.0, 20.0, 20.0, 20.0, 0.0), timeout_s=30.0)
    assert alive == [0, 1, 2, 4]
    assert [i for i, _ in dead] == [3]
    assert (report.processed, report.late) == (4, 1)


@pytest.mark.parametrize("body", [run_events, run_batches])
def test_events_beyond_the_queue_s_limit_are_dropped_oldest_first(
    body: Any, clock: list[float]
) -> None:
    report, alive, dead = ran(body, same, batch(8, 7, 6, 5, 4, 3, 2, 1), shed=0.75)
    assert alive == [6, 7]
    assert {reason for _, reason in dead} == {"Dropped: the queue was full"}
    assert (report.processed, report.late) == (2, 6)


@pytest.mark.parametrize("body", [run_events, run_batches])
def test_all_of_them_may_be_dropped(body: Any, clock: list[float]) -> None:
    def never(event: Any) -> Any:
        raise AssertionError("there is nothing to work on")

    report, alive, dead = ran(body, never, batch(40.0, 50.0), timeout_s=30.0)
    assert (alive, len(dead), report.processed, report.late) == ([], 2, 0, 2)


def test_a_failing_event_still_ends_the_run(clock: list[float]) -> None:
    with pytest.raises(EventFailed, match="ZeroDivisionError"):
        ran(run_events, lambda e: {"id": 1 // 0}, batch(1.0), timeout_s=30.0)


def test_impossible_settings_are_sentences() -> None:
    with pytest.raises(InvalidConfig, match="timeout_s is 0: give more than 0 seconds"):
        Pipeline("p", timeout_s=0)
    with pytest.raises(InvalidConfig, match="queue_limit is 0: give 1 event or more"):
        Pipeline("p", queue_limit=0)
