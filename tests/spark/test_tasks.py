"""Task bodies without Spark: what a replica measures and what it learns."""

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
from foretide.spark import tasks
from foretide.spark.pipeline import Pipeline
from foretide.spark.spread import feedback, keeps_keys
from foretide.spark.tasks import Report, Work, run_batches, run_events

SCHEMA = pa.schema([("city", pa.int64()), ("_at", pa.float64())])
CITIES = [0, 1, 0, 2, 0, 1]


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The task's clock: it stands still unless a function moves it."""
    now = [0.0]
    monkeypatch.setattr(tasks, "perf_counter", lambda: now[0])
    return now


def batch() -> pa.RecordBatch:
    keys = pa.array(np.array(CITIES, dtype=np.int64))
    return pa.RecordBatch.from_arrays([pa.array(CITIES), pa.array([0.0] * 6), keys], ["city", "_at", "_key"])


def ran(body: Any, function: Any, learner: OnlineShuffle | None) -> tuple[Report, list[pa.RecordBatch]]:
    found: dict[int, Report] = {}
    work = Work("op", function, SCHEMA, {None: frozenset({"city"})}, sample_every=4, learner=learner)
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
    np.testing.assert_allclose(learner.estimate(np.array([0, 1, 2], dtype=np.uint64)), [1.0, 2.0, 3.0])
    assert ran(run_events, work, learner)[0].expected_s == pytest.approx(10.0)
    assert ran(run_events, work, None)[0].sampled == 2


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
    assert kinds == {"free": OnlineShuffle, "keyed": KeyHash, "chosen": LoadAware, "own": OnlineShuffle, "sql": Shuffle}
    by = {n: p.steps[n].grouped_by(keeps_keys(g)) for n, g in found.items()}
    assert by == {"free": ("city", "age"), "keyed": ("city",), "chosen": (), "own": (), "sql": ()}
    with pytest.raises(InvalidConfig, match="needs busy time per replica"):
        p.frame(inputs="src", name="bad", grouping="osg")
