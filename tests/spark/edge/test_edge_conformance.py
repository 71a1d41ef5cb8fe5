"""What every kind of edge must do, on every kind: directories, Kafka topics with manifests in a
folder or in a store, and some readers on each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from broker import Topics
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running, kafka
from foretide.spark.declare.kafka import Kafka
from foretide.spark.edge.directory import DirectoryEdges
from foretide.spark.edge.kafka import KafkaEdges
from foretide.spark.edge.protocol import Edges, Manifest, Outlet
from foretide.spark.edge.store import Place as Kept
from foretide.spark.edge.store import open_store
from foretide.spark.worker.columns import STAMP, TO

pytestmark = pytest.mark.spark
KINDS = ("directory", "kafka", "store", "mixed")
SCHEMA = f"id long, text string, {STAMP} double"
COLUMNS = ("id", "text", STAMP)
ONE = {"0": Outlet(COLUMNS, ("to.b",))}


@dataclass
class Place:
    """Edges of one kind in a folder of their own. ``again`` opens them as a restart does."""

    spark: SparkSession
    again: Callable[[], Edges]

    def __post_init__(self) -> None:
        self.edges = self.again()
        self.edges.output("a").create()

    def events(self, ids: range, tasks: int = 2) -> DataFrame:
        frame = self.spark.range(ids.start, ids.stop, 1, tasks)
        return frame.selectExpr("id", "cast(id as string) as text", f"id * 0.5D as {STAMP}")

    def write(self, batch: int, frame: DataFrame, per_file: int = 0, **more: Any) -> Manifest:
        """A batch up to the moment before its delivery: its manifest."""
        output = self.edges.output("a") if "output" not in more else more["output"]
        outlets = more.get("outlets", ONE)
        staging = output.stage(batch)
        output.write(frame, outlets, staging, per_file)
        files = output.collect(outlets, staging)
        counts = {folder: sum(n for _, n in held) for folder, held in files.items()}
        manifest = Manifest(batch, float(batch), 1, {}, counts, files)
        if more.get("deliver", True):
            output.deliver(staging, manifest)
        return manifest

    def read(self, limit: int = 10**9, start: dict[str, str] | None = None) -> list[int]:
        inbox = self.edges.input("b", ["a"])
        begin = start or inbox.start()
        pieces = inbox.between(begin, inbox.advance(begin, limit)).get("a", [])
        schema = StructType.fromDDL(SCHEMA)
        assert isinstance(schema, StructType)
        rows = inbox.frame(self.spark, schema, pieces).collect() if pieces else []
        assert all(r.text == str(r.id) and r[STAMP] == r.id * 0.5 for r in rows)
        assert len(rows) == sum(p.events for p in pieces)
        return sorted(r.id for r in rows)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Place]:
    if request.param == "directory":
        yield Place(spark, lambda: DirectoryEdges(tmp_path / "edges"))
        return
    topics: Topics = request.getfixturevalue("topics")
    opened: list[KafkaEdges] = []

    def again() -> KafkaEdges:
        root: Kept = tmp_path / "edges"
        if request.param == "store":
            root = open_store(f"file://{tmp_path}") / "edges"
        on_disk = [("a", "to.b"), ("a", "dead")] if request.param == "mixed" else []
        prefix = f"t-{tmp_path.name}"
        edges = KafkaEdges(root, topics.servers, {}, lambda: prefix, on_disk=on_disk)
        edges.prepare({("a", reader): 4 for reader in ("to.b", "to.c", "sink.s", "dead")})
        opened.append(edges)
        return edges

    yield Place(spark, again)
    for edges in opened:
        edges.close()


def test_what_was_written_is_read_once_delivered_and_not_before(place: Place) -> None:
    staged = place.write(0, place.events(range(100)), deliver=False)
    assert staged.delivered == {"to.b": 100}
    assert place.read() == []
    place.write(0, place.events(range(50)))
    assert place.read() == list(range(50))
    place.edges = place.again()
    assert place.edges.output("a").has(0)
    assert place.read() == list(range(50))


def test_only_the_delivered_attempt_of_a_batch_is_read(place: Place) -> None:
    """Two drivers write the same batch, one of them too late: its events are never read."""
    late = place.edges.output("a")
    place.write(0, place.events(range(30)), output=late, deliver=False)
    place.write(0, place.events(range(100, 120)))
    place.write(1, place.events(range(120, 140)))
    assert place.read() == list(range(100, 140))


def test_a_failed_task_is_tried_again_and_its_events_come_once(
    place: Place, tmp_path: Path
) -> None:
    """On a session without retries the whole write fails, and the next attempt replaces it."""
    fails = tmp_path / "fails"
    fails.touch()

    def once(batches: Any) -> Any:
        yield from batches
        if TaskContext.get().partitionId() == 1 and fails.exists():  # type: ignore[union-attr]
            raise ValueError("after its events were handed on")

    frame = place.events(range(5000)).mapInArrow(once, SCHEMA)
    with pytest.raises(Exception, match="after its events"):
        place.write(0, frame)
    fails.unlink()
    place.write(0, frame)
    assert place.read() == list(range(5000))


def test_a_limit_takes_the_oldest_and_at_least_one_piece(place: Place) -> None:
    for batch in range(3):
        ids = range(batch * 100, batch * 100 + 100)
        place.write(batch, place.events(ids, tasks=1), per_file=10)
    assert place.read(limit=25) == list(range(20))
    assert place.read(limit=1) == list(range(10))
    inbox = place.edges.input("b", ["a"])
    reached = inbox.advance(inbox.start(), 150)
    assert place.read(start=reached) == list(range(150, 300))


def test_discarded_pieces_are_gone_and_the_others_stay(place: Place) -> None:
    place.write(0, place.events(range(20)))
    place.write(1, place.events(range(20, 40)))
    inbox = place.edges.input("b", ["a"])
    first = inbox.advance(inbox.start(), 20)
    pieces = inbox.between(inbox.start(), first)["a"]
    inbox.discard(pieces)
    inbox.discard(pieces)
    place.edges.output("a").sweep()
    assert place.read(start=first) == list(range(20, 40))


def test_every_reader_gets_its_own_events_in_one_pass(place: Place) -> None:
    outlets = {
        "0": Outlet(COLUMNS, ("to.b", "to.c")),
        "1": Outlet(("id", STAMP), ("sink.s",)),
        "dead": Outlet(("text", STAMP), ("dead",)),
    }
    to = sf.when(sf.col("id") < 10, "0").when(sf.col("id") < 30, "1").otherwise("dead")
    frame = place.events(range(35)).withColumn(TO, to)
    manifest = place.write(0, frame, outlets=outlets)
    assert manifest.delivered == {"to.b": 10, "to.c": 10, "sink.s": 20, "dead": 5}
    assert place.read() == list(range(10))
    output = place.edges.output("a")
    held = output.frame(place.spark, StructType.fromDDL("id long"), "sink.s", 0)  # type: ignore[arg-type]
    assert held is not None
    assert sorted(r.id for r in held.collect()) == list(range(10, 30))
    dead = output.frame(place.spark, StructType.fromDDL("text string"), "dead")  # type: ignore[arg-type]
    assert dead is not None
    assert sorted(r.text for r in dead.collect()) == [str(i) for i in range(30, 35)]
    output.release(0, "sink.s")
    assert output.frame(place.spark, StructType.fromDDL("id long"), "sink.s", 0) is None  # type: ignore[arg-type]
    assert place.read() == list(range(10))


def test_every_type_of_spark_comes_back_as_it_was(place: Place) -> None:
    frame = place.spark.sql(
        "select 1 as id, cast('NaN' as double) d, float('-Infinity') f, "
        "timestamp'2021-03-04 05:06:07.123456' t, timestamp_ntz'1900-01-01 00:00:00.000001' n, "
        "date'1582-10-15' day, cast(1.10 as decimal(20,4)) dec, X'00ff' bin, 'ü\\u0000' s, "
        "array(1, null) arr, map('k', array(struct(1 as x))) m, cast(null as string) missing, "
        f"named_struct('a', struct(true as b)) nested, 1.5D as {STAMP}"
    )
    columns = tuple(frame.columns)
    place.write(0, frame, outlets={"0": Outlet(columns, ("to.b",))})
    inbox = place.edges.input("b", ["a"])
    pieces = inbox.between(inbox.start(), inbox.advance(inbox.start(), 10))["a"]
    back = inbox.frame(place.spark, frame.schema, pieces)
    assert [str(r) for r in back.collect()] == [str(r) for r in frame.collect()]


def test_stamps_of_what_was_written_are_exact(place: Place) -> None:
    output = place.edges.output("a")
    staging = output.stage(0)
    output.write(place.events(range(40)), ONE, staging, 0)
    files = output.collect(ONE, staging)
    stamps = output.stamps(staging, files)
    assert stamps is not None
    assert sorted(stamps[0].tolist()) == [i * 0.5 for i in range(40)]
    assert stamps[1:] == (40.0, sum(i * 0.5 for i in range(40)))
    assert output.stamps(staging, {}) is None


def pipeline(
    edges: Kafka | None, events: int, store: str | None = None, single: Kafka | None = None
) -> Pipeline:
    """Keys, named outputs, a predicate, a loop, a stateful count, dead letters, a writer. With
    ``single``, two of its edges are on Kafka.
    """
    p = Pipeline("parts", trigger_s=0.3, edges=edges, store=store)
    load = Load("burst", np.array([float(events)]), 0.01)
    p.source("events", Generator(load, max_events_per_batch=events // 3, keys=5))

    @p.operator(
        inputs=["events", "again"], schema="id long, key long, rounds long, value double",
        edges={"again": single} if single else None,
    )  # fmt: skip
    def enter(event: dict[str, Any]) -> dict[str, Any]:
        rounds = int(event["value"]) if event["value"] and event["value"] >= 1 else 0
        return {"id": event["id"], "key": event["key"], "rounds": rounds, "value": 0.0}

    @p.operator(
        inputs="enter", key="key", on_error="divert", max_replicas=3,
        outputs={"done": "id long, key long", "loop": "id long, key long, rounds long"},
    )  # fmt: skip
    def split(event: dict[str, Any]) -> Any:
        if event["id"] % 50 == 7:
            raise ValueError("seven")
        if event["id"] % 10 == 0 and event["rounds"] < 2:
            return "loop", {k: event[k] for k in ("id", "key", "rounds")}
        return "done", {"id": event["id"], "key": event["key"]}

    @p.operator(inputs="split:loop", schema="id long, at double, key long, value double")
    def again(event: dict[str, Any]) -> dict[str, Any]:
        return {"id": event["id"], "at": 0.0, "key": event["key"], "value": event["rounds"] + 1.0}

    @p.frame(inputs="split:done", stateful=True, output_mode="update", max_replicas=2)
    def count(frame: DataFrame) -> DataFrame:
        return frame.groupBy("key").agg(sf.count("*").alias("n"))

    @p.batches(inputs={"split:done": "key < 3"}, max_replicas=2, edges=single)
    def low(batch: Any) -> Any:
        return batch

    p.sink("counts", "count")
    p.sink("small", "low")
    return p


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipeline_of_every_part_counts_each_event_once_over_restarts(
    kind: str,
    spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    events, edges = 300, None
    store = f"file://{tmp_path / 'store'}" if kind == "store" else None
    if kind != "directory":
        edges = kafka(request.getfixturevalue("topics").servers)
    if kind == "mixed":
        declared = pipeline(None, events, single=edges)
        assert declared.edge("split", "low") == declared.edge("again", "enter") == edges
        assert declared.edge("enter", "split") is declared.edge("split", "count") is None
    else:
        declared = pipeline(edges, events, store)
    written: set[tuple[int, int]] = set()
    declared.sink(
        "all", "split:done", lambda f, batch: written.update((r.id, r.key) for r in f.collect())
    )
    for limit in (0.0, None):
        with Running(declared, spark, tmp_path) as running:
            running.set_replicas({"split": 3, "low": 2})
            if limit is None:
                running.wait(240)
                assert {n: running.backlog(n) for n in running.topology.names} == dict.fromkeys(
                    running.topology.names, 0
                )
                low = sorted(r.id for r in running.read("small").collect())
                newest: dict[int, int] = {}
                for r in running.read("counts").collect():
                    newest[r.key] = max(newest.get(r.key, 0), r.n)
                dead = [json.loads(r._event)["id"] for r in running.read("dead:split").collect()]
            else:
                with running.accounts.changed:
                    while running.accounts.consumed("split") == 0:
                        running.check()
                        running.accounts.changed.wait(0.5)
    bad = [i for i in range(events) if i % 50 == 7]
    assert sorted(dead) == bad
    assert sorted(i for i, _ in written) == [i for i in range(events) if i not in bad]
    assert low == sorted(i for i, key in written if key < 3)
    assert sum(newest.values()) == events - len(bad)
