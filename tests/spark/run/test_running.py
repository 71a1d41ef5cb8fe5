"""Pipelines on real Spark: chains, splits, loops, diamonds, state, live replicas, faults."""

import errno
import json
import os
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from foretide.errors import ActuationError, InvalidConfig, NotReady, PipelineFailed
from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.probe import PipelineProbe
from foretide.spark.run.accounts import Delivery

pytestmark = pytest.mark.spark

EVENTS = 300


def new(name: str = "p", events: int = EVENTS, **generator: Any) -> Pipeline:
    """A pipeline whose source gives all its events at once."""
    p = Pipeline(name, trigger_s=0.2)
    p.source("events", Generator(Load("burst", np.array([float(events)]), 0.01), **generator))
    return p


class FirstWindow:
    """Opens the probe's first window just before the first batch counts, however long the start
    took. ``done`` are the events of that batch, which count before the window: none when the first
    batch began before any event was due, else all of them.
    """

    probe: PipelineProbe | None = None
    done: int = 0

    def __call__(self, running: Running, name: str, delivery: Delivery) -> None:
        if self.probe is None:
            self.probe = PipelineProbe(
                running, ExecutorPool(running.spark), target_latency_s=1000.0
            )
            self.done = running.accounts.done(name)
            with pytest.raises(NotReady):
                self.probe.read(running.started_at)


def ids(frame: DataFrame) -> list[int]:
    return sorted(r["id"] for r in frame.select("id").collect())


def even_and_odd() -> Pipeline:
    """A split by parity; ids that end in seven fail."""
    p = new()

    @p.operator(
        inputs="events",
        outputs={"even": "id long, key long", "odd": "id long, note string"},
        on_error="divert",
    )
    def parse(event: dict[str, Any]) -> Any:
        if event["id"] % 10 == 7:
            raise ValueError("ends in seven")
        if event["id"] % 2:
            return "odd", {"id": event["id"], "note": "odd one"}
        return [("even", {"id": event["id"], "key": event["key"]})]

    @p.batches(inputs={"parse:even": "id >= 100"}, key="key", max_replicas=4)
    def large(batch: Any) -> Any:
        return batch

    p.sink("evens", inputs="large")
    p.sink("odds", inputs="parse:odd")
    return p


def test_a_chain_with_a_split_and_dead_letters_loses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    p = even_and_odd()
    opening = FirstWindow()
    with Running(p, spark, tmp_path, on_delivery=opening) as running:
        running.set_replicas({"large": 3})
        running.wait()
        assert opening.probe is not None
        snapshot = opening.probe.read(running.started_at + 10.0).check(running.topology)
        good = [i for i in range(EVENTS) if i % 10 != 7]
        assert ids(running.read("evens")) == [i for i in good if i % 2 == 0 and i >= 100]
        assert ids(running.read("odds")) == [i for i in good if i % 2]
        assert running.read("odds").columns == ["id", "note", "_at"]
        dead = running.read("dead:parse").collect()
        assert len(dead) == EVENTS // 10
        assert {(d["_operator"], d["_error"]) for d in dead} == {
            ("parse", "ValueError: ends in seven")
        }
        assert all('"id": ' in d["_event"] for d in dead)
        with pytest.raises(ActuationError, match="takes 1 to 4 replicas, not 9"):
            running.set_replicas({"large": 9})
        with ThreadPoolExecutor(
            4
        ) as pool:  # a loop's thread and the threads of batches renew one operator's limit at once
            list(pool.map(lambda n: running.set_replicas({"large": 1 + n % 4}), range(400)))
        assert json.loads((tmp_path / "replicas.json").read_bytes()) == running.replicas
        assert int(running.folder.limit_file("large").read_text()) == running.limits.per_file(
            ["large"]
        )

    parse_sample, large_sample = snapshot.samples["parse"], snapshot.samples["large"]
    assert (parse_sample.processed, parse_sample.dropped) == (300 - opening.done, 30)
    assert parse_sample.backlog == 0
    assert parse_sample.arrived == parse_sample.offered == 300
    assert opening.done in (0, 300)
    assert parse_sample.emitted == {"large": 0 if opening.done else 100}
    assert (
        large_sample.arrived,
        large_sample.processed,
        large_sample.backlog,
        large_sample.replicas,
    ) == (100, 100, 0, 3)
    assert large_sample.offered is None
    assert sum(large_sample.replica_processed or ()) == 100
    assert len(large_sample.replica_busy_s or ()) == 3
    assert parse_sample.busy_s is not None
    assert parse_sample.scv_service is not None
    assert snapshot.latency is not None
    assert (snapshot.latency.count, snapshot.latency.within) == (100, 100)
    assert 0 < snapshot.latency.p50_ms <= snapshot.latency.p90_ms <= snapshot.latency.p99_ms
    assert (large_sample.sojourn_s or 0) > 0


def test_a_restart_goes_on_where_it_stopped(spark: SparkSession, tmp_path: Path) -> None:
    def declared(events: int) -> Pipeline:
        p = new(events=events)
        p.operator(inputs="events", name="a")(lambda e: e)
        p.operator(inputs="a", name="b")(lambda e: e)
        p.sink("out", inputs="b")
        return p

    with Running(declared(100), spark, tmp_path) as running:
        running.set_replicas({"b": 2})
        with pytest.raises(PipelineFailed, match="another process runs a pipeline"):
            Running(declared(100), spark, tmp_path)
        running.wait()
    with Running(declared(250), spark, tmp_path) as running:
        assert running.replicas == {"a": 1, "b": 2}
        running.wait()
        assert ids(running.read("out")) == list(range(250))
        query = running.queries["a"].query
        assert query is not None
        query.stop()
        with pytest.raises(
            PipelineFailed, match="operator 'a': its query was stopped from outside"
        ):
            running.wait()

    torn = max(
        (tmp_path / "checkpoints" / "b" / "offsets").glob("[0-9]*"), key=lambda f: int(f.name)
    )
    kept = torn.read_text()
    torn.write_text("v1\n{}\n{tor")
    with pytest.raises(
        PipelineFailed, match=r"the checkpoint file .* cannot be read .*nothing was deleted"
    ):
        Running(declared(250), spark, tmp_path)
    torn.write_text(kept)
    for lost in ("checkpoints/b", "edges/b"):
        (tmp_path / lost).rename(tmp_path / "hidden")
        (tmp_path / lost).mkdir()
        with pytest.raises(
            PipelineFailed, match=r"operator 'b': .* is lost or an old copy: nothing was deleted"
        ):
            Running(declared(250), spark, tmp_path)
        (tmp_path / lost).rmdir()
        (tmp_path / "hidden").rename(tmp_path / lost)
    (tmp_path / "edges" / "a").rename(tmp_path / "hidden")
    with pytest.raises(
        PipelineFailed, match=r"the edge directory .*edges/a is gone: nothing was deleted"
    ):
        Running(declared(250), spark, tmp_path)
    with pytest.raises(InvalidConfig, match="for a pattern: choose a directory without"):
        Running(declared(250), spark, tmp_path / "run[1]")
    other = new("other")
    other.operator(inputs="events", name="a")(lambda e: e)
    with pytest.raises(InvalidConfig, match="belongs to pipeline 'p', not to 'other'"):
        Running(other, spark, tmp_path)


def test_a_renamed_operator_goes_on_with_its_former_name_and_is_refused_without(
    spark: SparkSession, tmp_path: Path
) -> None:
    def declared(events: int, name: str, **settings: Any) -> Pipeline:
        p = new(events=events)
        p.operator(inputs="events", name="a")(lambda e: e)
        p.operator(inputs="a", name=name, **settings)(lambda e: e)
        p.operator(inputs=name, name="c")(lambda e: e)
        p.sink("out", inputs="c")
        return p

    with Running(declared(60, "b"), spark, tmp_path) as running:
        running.wait()
    with pytest.raises(InvalidConfig, match=r"progress of operator 'b'.* nothing of 'renamed'"):
        Running(declared(100, "renamed"), spark, tmp_path)
    with Running(declared(100, "renamed", formerly="b"), spark, tmp_path) as running:
        running.wait()
        assert ids(running.read("out")) == list(range(100))
        assert running.accounts.latest("renamed").consumed == {"a": 100}


def test_sinks_are_gathered_in_few_files_with_every_event_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foretide.spark.run.output.FIRST_S", 600.0)  # gathered once, at the end

    def declared(events: int) -> Pipeline:
        p = new(events=events, max_events_per_batch=20)
        p.operator(inputs="events", name="a", on_error="divert", schema="id long")(
            lambda e: {"id": e["id"] // (e["id"] % 50)}
        )
        p.sink("out", inputs="a")
        return p

    run, output = tmp_path / "run", tmp_path / "output"
    with Running(declared(100), spark, run, output=output) as running:
        running.wait()
        assert running.read("out").count() == 98, "also what was not gathered yet"
    (file,) = (output / "out").glob("*.parquet")
    assert file.name == "part-0-4.parquet"
    assert [f.name for f in (output / "dead-a").iterdir()] == ["part-0-2.parquet"]
    assert not list(run.glob("edges/a/b-*/sink.out")), "one copy is enough"
    assert len(list(run.glob("edges/a/b-*"))) == 1
    # The driver dies after the rename of a gathered file and before its folders are removed.
    left = run / "edges" / "a" / "b-4" / "sink.out"
    left.mkdir()
    shutil.copy(file, left / "again.parquet")
    with Running(declared(200), spark, run, output=output) as running:
        running.wait()
        assert running.read("out").count() == 196
        assert running.read("dead:a").count() == 4
    assert sum(pq.read_metadata(f).num_rows for f in (output / "out").iterdir()) == 196


def test_a_diamond_counts_each_event_once_per_path(spark: SparkSession, tmp_path: Path) -> None:
    p = new()
    p.operator(inputs="events", name="top")(lambda e: e)
    p.operator(inputs="top", name="left", schema="id long, path array<string>")(
        lambda e: {"id": e["id"], "path": ["left"]}
    )
    p.frame(inputs="top", name="right")(
        lambda f: f.select("id", sf.array(sf.lit("right")).alias("path"), "_at")
    )
    p.operator(inputs=["left", "right"], name="bottom")(lambda e: e)
    p.sink("out", inputs="bottom")
    with Running(p, spark, tmp_path) as running:
        running.wait()
        rows = running.read("out").select("id", "path").collect()
        assert Counter((r["id"], *r["path"]) for r in rows) == Counter(
            (i, s) for i in range(EVENTS) for s in ("left", "right")
        )
        assert running.accounts.latest("bottom").consumed == {"left": EVENTS, "right": EVENTS}


def test_a_loop_drains(spark: SparkSession, tmp_path: Path) -> None:
    """A detector sends an event back to itself until it has seen it id mod 3 more times."""
    p = new(events=90)
    p.operator(inputs="events", name="ingest", schema="id long, left long")(
        lambda e: {"id": e["id"], "left": e["id"] % 3}
    )

    @p.operator(
        inputs={"ingest": None, "detect:again": None},
        outputs={"again": "id long, left long", "done": "id long"},
    )
    def detect(event: dict[str, Any]) -> Any:
        if event["left"]:
            return "again", {"id": event["id"], "left": event["left"] - 1}
        return "done", {"id": event["id"]}

    p.sink("out", inputs="detect:done")
    with Running(p, spark, tmp_path) as running:
        running.wait()
        assert ids(running.read("out")) == list(range(90))
        assert running.accounts.latest("detect").consumed == {"ingest": 90, "detect": 30 + 60}
        assert running.backlog("detect") == 0


def test_a_failing_event_stops_the_pipeline_with_its_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    p = new()

    @p.operator(inputs="events", schema="id long")
    def picky(event: dict[str, Any]) -> Any:
        if event["id"] == 42:
            raise KeyError("colour")
        return {"id": event["id"]}

    with (
        Running(p, spark, tmp_path) as running,
        pytest.raises(
            PipelineFailed, match=r"operator 'picky' failed on event .*KeyError: 'colour'"
        ),
    ):
        running.wait()


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (
            lambda p: p.operator(inputs="a", name="b", schema="id lon")(str),
            "operator 'b': schema 'id lon' cannot be read",
        ),
        (
            lambda p: p.operator(inputs="a", name="b", key="colour")(str),
            "key column 'colour' is not among",
        ),
        (
            lambda p: p.operator(inputs="a", name="b", schema="_at double")(str),
            "column '_at' is reserved",
        ),
        (lambda p: p.operator(inputs={"a": "colour = 1"}, name="b")(str), "which Spark refuses"),
        (
            lambda p: p.operator(inputs=["a", "events"], name="b")(str),
            "'b' cannot read from 'events': 'at' is double",
        ),
        (
            lambda p: p.frame(inputs="a", name="b")(lambda f: f.select("colour")),
            "operator 'b' fails on its input's columns",
        ),
        (lambda p: p.frame(inputs="a", name="b")(lambda f: 3), "must return a DataFrame"),
        (
            lambda p: p.frame(inputs="a", name="b")(lambda f: f.select(sf.lit(1).alias("_to"))),
            "'b': column '_to' is reserved",
        ),
        (lambda p: p.source("c", lambda s: s.range(3)), "must give a streaming DataFrame"),
        (
            lambda p: p.source(
                "c", lambda s: s.readStream.format("rate").load().withColumn("_key", sf.lit(1))
            ),
            "'c': column '_key' is",
        ),
    ],
)
def test_mistakes_that_spark_finds_are_errors_before_anything_starts(
    spark: SparkSession, tmp_path: Path, declare: Any, message: str
) -> None:
    p = new()
    p.operator(inputs="events", name="a", schema="id long")(lambda e: e)
    declare(p)
    with pytest.raises(InvalidConfig, match=message):
        Running(p, spark, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_edge_directory_that_vanishes_while_running_is_one_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    p = Pipeline("p", trigger_s=0.2)
    p.source("events", Generator(Load("endless", np.full(600, 50.0))))
    p.operator(inputs="events", name="a")(lambda e: e)
    with Running(p, spark, tmp_path) as running:
        with running.accounts.changed:
            assert running.accounts.changed.wait_for(
                lambda: running.accounts.latest("a").batch >= 0, 120
            )
        (tmp_path / "edges").rename(tmp_path / "hidden")
        with pytest.raises(PipelineFailed, match=r"is gone|has vanished"):
            running.wait()


def test_a_writer_that_failed_gets_the_same_batch_again_although_the_split_is_random(
    spark: SparkSession, tmp_path: Path
) -> None:
    p = new(max_events_per_batch=100)
    got: list[tuple[int, list[int]]] = []

    @p.operator(
        inputs="events",
        outputs={"left": "id long", "right": "id long, note string"},
        on_error="divert",
    )
    def split(event: dict[str, Any]) -> Any:
        return ("left" if os.urandom(1)[0] < 128 else "right"), {"id": event["id"]}

    def write(frame: DataFrame, batch: int) -> None:
        assert frame.columns == ["id"]
        got.append((batch, ids(frame)))
        if len(got) == 2:
            raise OSError(errno.ENOSPC, "the database is full")

    p.sink("out", inputs="split:left", write=write)
    p.sink("rest", inputs="split:right")
    with (
        Running(p, spark, tmp_path) as running,
        pytest.raises(PipelineFailed, match=r"sink 'out' failed on batch 1: .*database is full"),
    ):
        running.wait()
    with Running(p, spark, tmp_path) as running:
        running.wait()
        rest = ids(running.read("rest"))
    assert [batch for batch, _ in got] == [0, 1, 1, 2]
    assert got[1] == got[2]
    assert sorted([i for _, found in (got[0], *got[2:]) for i in found] + rest) == list(
        range(EVENTS)
    )
    assert not list(tmp_path.glob("edges/split/b-*/sink.out"))


@pytest.mark.parametrize("grouping", ["load-aware", "osg", "key-hash"])
def test_every_grouping_works_on_spark(spark: SparkSession, tmp_path: Path, grouping: str) -> None:
    p = new(max_events_per_batch=100)
    p.operator(
        inputs="events", name="a", key="key", grouping=grouping, max_replicas=3, min_replicas=3
    )(lambda e: e)
    p.sink("out", inputs="a")
    with Running(p, spark, tmp_path) as running:
        running.wait()
        assert ids(running.read("out")) == list(range(EVENTS))
        reports = [r for b in running.accounts.take()["a"].deliveries for r in b.reports]
    assert {r.replica for r in reports} == {0, 1, 2}
    assert sum(r.processed for r in reports) == EVENTS


def test_local_mode_says_once_that_it_has_no_executors_to_ask_for(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    executors = ExecutorPool(spark)
    executors.request(5)
    executors.request(7)
    said = [r.message for r in caplog.records if r.name == "foretide.spark.control.executors"]
    assert said == ["local mode has one executor, the driver: executors stay as they are"]
    assert executors.names() == ("driver",)
    executors.utilization(1.0)
    (host,) = executors.utilization(2.0)
    assert (host.name, host.capacity) == ("driver", 16.0)


def test_local_mode_is_as_busy_as_its_tasks_not_as_long_as_it_is_up(spark: SparkSession) -> None:
    executors, told = ExecutorPool(spark), spark.sparkContext._jsc.sc().listenerBus()
    told.waitUntilEmpty()
    executors.utilization(1.0)
    spark.sparkContext.parallelize(range(4), 4).map(lambda _: sum(range(100_000))).count()
    told.waitUntilEmpty()
    (busy,) = executors.utilization(2.0)
    (idle,) = executors.utilization(3.0)
    assert busy.utilization > 0
    assert idle.utilization == 0
