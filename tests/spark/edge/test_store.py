"""A store has no rename: objects are created once or replaced whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from foretide.errors import InvalidConfig, PipelineFailed
from foretide.spark import Pipeline, kafka
from foretide.spark.edge.hadoop import open_hadoop
from foretide.spark.edge.inbox import Inbox
from foretide.spark.edge.protocol import Manifest, Position
from foretide.spark.edge.store import StorePath, address_for_readers, open_store, place_at
from foretide.spark.edge.stored import StoredBatches
from foretide.spark.run.folder import RunFolder


@pytest.fixture(params=["objects", pytest.param("hadoop", marks=pytest.mark.spark)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StorePath:
    """An object store, and a file system that Spark's JVM opens."""
    url = f"file://{tmp_path / 'store'}"
    if request.param == "hadoop":
        return open_hadoop(url, request.getfixturevalue("spark"), tmp_path / "copy")
    return open_store(url)


def deliver(batches: StoredBatches, batch: int, **events: int) -> None:
    files = {f"to.{reader}": (("0-1-x", n),) for reader, n in events.items()}
    batches.deliver(batches.stage(batch), Manifest(batch, float(batch), 1, {}, {}, files))


def test_an_object_is_created_once_and_replaced_whole(store: StorePath) -> None:
    file = store / "a" / "one.json"
    file.create(b"1")
    with pytest.raises(FileExistsError):
        file.create(b"2")
    assert file.read_bytes() == b"1"
    file.write_bytes(b"3")
    assert (file.read_text(), file.is_file(), (store / "a").exists()) == ("3", True, True)
    assert [p.name for p in store.glob()] == ["a"]
    assert list((store / "a").glob()) == [file]
    file.unlink()
    file.unlink(missing_ok=True)
    assert not file.exists()
    with pytest.raises(FileNotFoundError):
        file.read_bytes()


def test_a_batch_is_delivered_by_one_object_and_by_one_driver(store: StorePath) -> None:
    one, other = StoredBatches(store / "a"), StoredBatches(store / "a")
    assert (one.newest(), one.latest(), one.has(0)) == (-1, None, False)
    deliver(one, 0, b=5)
    with pytest.raises(PipelineFailed, match="another process runs this pipeline"):
        deliver(other, 0, b=7)
    latest = other.latest()
    assert latest is not None
    assert latest.files == {"to.b": (("0-1-x", 5),)}


def test_manifests_go_when_all_readers_have_committed_them(store: StorePath) -> None:
    read = {"to.b": Position(), "to.c": Position()}
    batches = StoredBatches(store / "a", read.__getitem__)
    for batch in range(4):
        deliver(batches, batch, b=1, c=1)
    deliver(batches, 4)  # nothing for anyone
    deliver(batches, 5, b=1)
    batches.sweep()
    assert batches.batches() == [0, 1, 2, 3, 4, 5]
    read.update({"to.b": Position(5, 1), "to.c": Position(1, 1)})
    batches.sweep()
    assert batches.batches() == [2, 3, 4, 5]
    read["to.c"] = Position(3, 1)
    batches.sweep()
    assert batches.batches() == [5]
    assert StoredBatches(store / "a").newest() == 5
    (store / "a" / "newest").write_bytes(b"0")  # a hint from before a crash
    again = StoredBatches(store / "a")
    assert again.newest() == 5
    again.renew_hint()
    assert (store / "a" / "newest").read_text() == "5"


def test_what_a_writer_took_is_not_to_be_had_again(store: StorePath) -> None:
    batches = StoredBatches(store / "a")
    for batch in range(2):
        files = {"sink.out": (("0-1-x", 1),), "sink.kept": (("0-1-x", 1),)}
        batches.deliver(batches.stage(batch), Manifest(batch, 0.0, 1, {}, {}, files))
    batches.release(0, "sink.out")
    assert [batches.holds(b, "sink.out") for b in (0, 1)] == [False, True]
    assert StoredBatches(store / "a").holds(0, "sink.kept")
    batches.sweep()
    assert batches.batches() == [0, 1]  # the other sink keeps its events


def test_a_damaged_manifest_is_a_sentence(store: StorePath) -> None:
    batches = StoredBatches(store / "a")
    deliver(batches, 0, b=1)
    (store / "a" / "b-0.json").write_bytes(b"{")
    with pytest.raises(PipelineFailed, match=r"b-0\.json cannot be read"):
        batches.manifest(0)
    with pytest.raises(PipelineFailed, match=r"b-7\.json is gone"):
        batches.manifest(7)


def test_replicas_and_identity_outlive_the_drivers_folder(tmp_path: Path) -> None:
    url = f"file://{tmp_path / 'store'}"
    first = RunFolder(tmp_path / "one", store=url)
    at = first.started_at("p")
    first.save_replicas({"a": 3})
    first.release()
    other = RunFolder(tmp_path / "two", store=url)
    assert (other.saved_replicas(), other.started_at("p")) == ({"a": 3}, at)
    with pytest.raises(InvalidConfig, match="belongs to pipeline 'p'"):
        other.started_at("q")
    other.release()


@pytest.mark.spark
def test_readers_without_a_jvm_see_what_is_in_a_hadoop_file_system(
    spark: SparkSession, tmp_path: Path
) -> None:
    url = f"file://{tmp_path / 'store'}"
    store = open_hadoop(url, spark, tmp_path / "copy")
    batches = StoredBatches(store / "edges" / "a")
    deliver(batches, 0, b=5)
    deliver(batches, 1, b=7)
    reader = Inbox(place_at(address_for_readers(store / "edges")), "b", ["a"])
    assert reader.advance(reader.start(), 100) == {"a": "1.1"}
    again = open_hadoop(url, spark, tmp_path / "other machine")
    reader = Inbox(place_at(address_for_readers(again / "edges")), "b", ["a"])
    found = reader.between(reader.start(), {"a": "1.1"})["a"]
    assert [piece.events for piece in found] == [5, 7]
    (again / "edges" / "a" / "b-0.json").unlink()
    assert [piece.events for piece in reader.pieces("a", Position())] == [7]


@pytest.mark.spark
def test_a_file_system_that_spark_does_not_know_is_a_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(InvalidConfig, match=r'"nope".* the keys in Spark\'s spark\.hadoop'):
        open_store("nope://x", spark, tmp_path / "copy")


def test_a_store_that_cannot_be_used_is_a_sentence() -> None:
    with pytest.raises(InvalidConfig, match="the store nope://x cannot be used"):
        open_store("nope://x")
    with pytest.raises(InvalidConfig, match="is not the address of a store"):
        Pipeline("p", edges=kafka("a:1"), store="/tmp/run")
    with pytest.raises(InvalidConfig, match=r"declare edges=kafka\(servers\) as well"):
        Pipeline("p", store="s3a://bucket/run")


def test_places_are_read_back_from_their_text(tmp_path: Path) -> None:
    assert place_at(str(tmp_path)) == tmp_path
    place = StorePath("s3a://bucket/run") / "edges"
    assert str(place_at(str(place))).rstrip("/") == str(place)
    assert place.with_name("other") == StorePath("s3a://bucket/run", "other")
