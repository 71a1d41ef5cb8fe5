"""Task bodies without Spark: what a replica measures and what it learns."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from foretide.balance.count_min import CostSketch
from foretide.balance.key_hash import KeyHash
from foretide.balance.load_aware import LoadAware
from foretide.balance.osg import OnlineShuffle
from foretide.balance.shuffle import Shuffle
from foretide.errors import InvalidConfig
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.worker import batches, meter, tasks
from foretide.spark.worker.batches import run_batches
from foretide.spark.worker.meter import Progress, Report, read_progress
from foretide.spark.worker.partitioning import feedback
from foretide.spark.worker.tasks import run_events
from foretide.spark.worker.work import EventFailed, Work

SCHEMA = pa.schema([("city", pa.int64()), ("_at", pa.float64())])
CITIES = [0, 1, 0, 2, 0, 1]


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The task's clock: it stands still unless a function moves it."""
    now = [0.0]
    for module in (tasks, batches):
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    monkeypatch.setattr(meter, "perf_counter", lambda: now[0])
    return now


def batch() -> pa.RecordBatch:
    keys = pa.array(np.array(CITIES, dtype=np.int64))
    return pa.RecordBatch.from_arrays(
        [pa.array(CITIES), pa.array([0.0] * 6), keys], ["city", "_at", "_key"]
    )


def ran(
    body: Any, function: Any, learner: OnlineShuffle | None
) -> tuple[Report, list[pa.RecordBatch]]:
    found: dict[int, Report] = {}
    work = Work(
        "op", function, SCHEMA, {None: frozenset({"city"})}, sample_every=4, learner=learner
    )
    made = list(body(work, found.update)(iter([batch()])))
    return found[0], made


def test_a_grouping_that_learns_costs_is_told_every_event_s_time(ticks: list[float]) -> None:
    def work(event: dict[str, Any]) -> dict[str, Any]:
        ticks[0] += 1.0 + event["city"]
        return event

    learner = OnlineShuffle()
    report, made = ran(run_events, work, learner)
    assert report.sampled == report.processed == 6
    assert report.busy_s == 10.0
    assert report.expected_s == 0.0
    assert made[0].schema.names == ["city", "_at"]
    learner.learn(feedback(learner, [report], 1, 10.0))
    np.testing.assert_allclose(
        learner.estimate(np.array([0, 1, 2], dtype=np.uint64)), [1.0, 2.0, 3.0]
    )
    assert ran(run_events, work, learner)[0].expected_s == pytest.approx(10.0)
    assert ran(run_events, lambda event: event, None)[0].sampled == 2
    assert ran(run_events, work, None)[0].sampled == 6, "slow events are worth timing, each of them"


def test_every_event_of_a_few_milliseconds_is_timed(ticks: list[float]) -> None:
    def work(event: dict[str, Any]) -> dict[str, Any]:
        ticks[0] += 0.003
        return event

    assert ran(run_events, work, None)[0].sampled == 6


def test_the_time_of_a_record_batch_counts_evenly_for_its_events(ticks: list[float]) -> None:
    def work(given: pa.RecordBatch) -> pa.RecordBatch:
        ticks[0] += 3.0
        return given

    learner = OnlineShuffle()
    report, made = ran(run_batches, work, learner)
    assert (report.sampled, report.busy_s) == (0, 3.0)
    assert made[0].schema.names == ["city", "_at"]
    assert report.costs is not None
    sketch = CostSketch.from_bytes(report.costs)
    assert sketch.events == 6
    np.testing.assert_allclose(sketch.estimate(np.array([0, 1, 2], dtype=np.uint64)), 0.5)


def test_feedback_merges_the_replicas_sketches(ticks: list[float]) -> None:
    def work(event: dict[str, Any]) -> dict[str, Any]:
        ticks[0] += 1.0
        return event

    learner = OnlineShuffle()
    first, _ = ran(run_events, work, learner)
    second, _ = ran(run_events, work, learner)
    second.replica = 2
    found = feedback(learner, [first, second], 3, 6.0)
    assert found.busy_s.tolist() == [6.0, 0.0, 6.0]
    assert found.processed.tolist() == [6, 0, 6]
    assert found.costs is not None
    assert found.costs.events == 12
    assert found.expected_s is not None
    assert feedback(LoadAware(), [first], 1, 6.0).expected_s is None


def test_the_system_s_grouping_holds_where_no_key_or_choice_says_otherwise() -> None:
    p = Pipeline("p")
    p.source("src", lambda spark: spark.readStream.format("rate").load())
    p.operator(inputs="src", name="free", cost=("city", "age"))(lambda e: e)
    p.operator(inputs="src", name="keyed", key="city", cost="age")(lambda e: e)
    p.operator(inputs="src", name="chosen", grouping="load-aware")(lambda e: e)
    p.operator(inputs="src", name="own", grouping=lambda: OnlineShuffle(memory=0.9))(lambda e: e)
    p.frame(inputs="src", name="sql")(lambda f: f)
    found = {n: s.new_grouping("osg") for n, s in p.steps.items()}
    kinds = {n: type(g) for n, g in found.items()}
    assert kinds == {
        "free": OnlineShuffle,
        "keyed": KeyHash,
        "chosen": LoadAware,
        "own": OnlineShuffle,
        "sql": Shuffle,
    }
    by = {n: p.steps[n].grouped_by(g.traits.keeps_keys) for n, g in found.items()}
    assert by == {"free": ("city", "age"), "keyed": ("city",), "chosen": (), "own": (), "sql": ()}
    with pytest.raises(InvalidConfig, match="needs busy time per replica"):
        p.frame(inputs="src", name="bad", grouping="osg")


def gave(function: Any, diverts: bool = False) -> list[dict[str, Any]]:
    """Rows that a function gives for the events 0 to 3, one per 10 s of arrival time."""
    fields = [("id", pa.int64()), ("word", pa.string()), ("_at", pa.float64())]
    fields += [("_error", pa.string()), ("_event", pa.string())] if diverts else []
    given = pa.RecordBatch.from_pydict({"id": [0, 1, 2, 3], "_at": [0.0, 10.0, 20.0, 30.0]})
    work = Work("op", function, pa.schema(fields), {None: frozenset({"id", "word"})}, diverts)
    return [
        row
        for made in run_events(work, lambda reports: None)(iter([given]))
        for row in made.to_pylist()
    ]


def test_every_row_carries_the_stamp_of_its_event() -> None:
    def work(event: dict[str, Any]) -> Any:
        whole = {"word": "w", "id": event["id"]}
        return [None, whole, [{"id": 5}, {"id": 6}], iter([whole, whole])][event["id"]]

    found = [(r["id"], r["word"], r["_at"]) for r in gave(work)]
    assert found == [
        (1, "w", 10.0),
        (5, None, 20.0),
        (6, None, 20.0),
        (3, "w", 30.0),
        (3, "w", 30.0),
    ]


def test_a_function_may_drop_every_event_of_a_batch() -> None:
    report, made = ran(run_events, lambda event: None, None)
    assert made == []
    assert report.processed == 6


def test_a_function_may_give_one_dict_again_and_again() -> None:
    same: dict[str, Any] = {}

    def work(event: dict[str, Any]) -> dict[str, Any]:
        same.update(id=event["id"], word=str(event["id"]))
        return same

    assert [r["word"] for r in gave(work)] == ["0", "1", "2", "3"]


def test_an_odd_column_is_named_and_a_bad_event_is_diverted_with_its_stamp() -> None:
    with pytest.raises(EventFailed, match=r"event \{'id': 0\}: ValueError: it gives column wrod"):
        gave(lambda e: {"id": e["id"], "wrod": "w"})

    def work(event: dict[str, Any]) -> Any:
        return [
            {"id": 0, "word": "w"},
            {"id": 1 / 0} if event["id"] == 1 else None,
            {"id": "x", "word": "w"},
            None,
        ][event["id"]]

    found = [(r["id"], r["_at"], r["_event"], r["_error"]) for r in gave(work, diverts=True)]
    assert found[:2] == [
        (0, 0.0, None, None),
        (None, 10.0, '{"id": 1}', "ZeroDivisionError: division by zero"),
    ]
    assert found[2][:3] == (None, 20.0, '{"id": "x", "word": "w"}')
    assert "ArrowInvalid" in found[2][3] or "ArrowTypeError" in found[2][3]


def test_what_does_not_fit_its_schema_counts_as_diverted_once_per_event() -> None:
    fields = [
        ("id", pa.int64()),
        ("_at", pa.float64()),
        ("_operator", pa.string()),
        ("_error", pa.string()),
        ("_event", pa.string()),
    ]
    given = pa.RecordBatch.from_pydict({"id": [0, 1, 2, 3], "_at": [0.0, 1.0, 2.0, 3.0]})

    def work(event: dict[str, Any]) -> Any:
        return (
            [{"id": "x"}, {"id": "y"}, {"id": 7}]
            if event["id"] == 2
            else {"id": [0, None, 0, "z"][event["id"]]}
        )

    found: dict[int, Report] = {}
    body = run_events(
        Work("op", work, pa.schema(fields), {None: frozenset({"id"})}, diverts=True), found.update
    )
    rows = [row for made in body(iter([given])) for row in made.to_pylist()]
    assert [(r["_operator"], r["_at"]) for r in rows if r["_error"]] == [
        ("op", 2.0),
        ("op", 2.0),
        ("op", 3.0),
    ]
    assert (found[0].processed, found[0].diverted) == (4, 2)


def test_a_batch_that_fails_although_each_of_its_events_passes_stops_the_pipeline(
    ticks: list[float],
) -> None:
    def work(given: pa.RecordBatch) -> pa.RecordBatch:
        if given.num_rows > 1:
            raise ValueError("too many")
        return given

    with pytest.raises(
        EventFailed,
        match=r"'op' failed on a batch of 6 events \(each alone passes\): ValueError: too many",
    ):
        ran(run_batches, work, None)


def test_an_event_without_a_stamp_gets_the_batch_s_instant() -> None:
    given = pa.RecordBatch.from_pydict({"city": [1, 2], "_at": pa.array([5.0, None])})
    found: dict[int, Report] = {}
    work = Work("op", lambda e: e, SCHEMA, {None: frozenset({"city"})}, arrived_at=7.0)
    (made,) = run_events(work, found.update)(iter([given]))
    assert made.column("_at").to_pylist() == [5.0, 7.0]
    assert found[0].stamp_sum == 12.0


def test_a_long_task_reports_its_progress_on_the_way(tmp_path: Path, ticks: list[float]) -> None:
    seen: list[dict[int, Progress]] = []

    def slow(event: dict[str, Any]) -> dict[str, Any]:
        seen.append(read_progress(f"{tmp_path}/7.0-"))
        ticks[0] += 0.6
        return event

    work = Work(
        "op", slow, SCHEMA, {None: frozenset({"city"})}, sample_every=4, progress=f"{tmp_path}/7.0-"
    )
    reports: dict[int, Report] = {}
    list(run_events(work, reports.update)(iter([batch()])))
    assert seen[0] == {}, "nothing was done yet"
    assert seen[-1] == {0: Progress(4, pytest.approx(2.4))}
    assert reports[0].processed == 6, "the report has all of it"
    assert read_progress(f"{tmp_path}/8.0-") == {}, "another batch"
    assert read_progress(f"{tmp_path}/none/7.0-") == {}
