"""Delivery by one rename, replay, exact counts, admission, cleaning up: files only, no Spark."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.errors import PipelineFailed
from foretide.spark.edge.edges import Inbox, Manifest, Outbox, Position, discard, plus, share, tidy


def deliver(outbox: Outbox, batch: int, counts: list[int], at: float = 0.0) -> None:
    staging = outbox.stage(batch)
    (staging / "to.b").mkdir()
    for i, n in enumerate(counts):
        pq.write_table(pa.table({"id": list(range(n))}), staging / "to.b" / f"part-{i}.parquet")
    files = tidy(staging / "to.b")
    outbox.deliver(staging, Manifest(batch, at, 1, {}, {"to.b": sum(counts)}, {"to.b": files}))


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    box = Outbox(tmp_path / "a")
    box.create()
    return box


def test_a_batch_is_invisible_until_it_is_delivered(outbox: Outbox) -> None:
    staging = outbox.stage(0)
    (staging / "to.b").mkdir()
    assert not outbox.has(0)
    assert outbox.latest() is None
    assert Inbox(outbox.root.parent, "b", ["a"]).pieces("a", Position()) == []
    outbox.deliver(staging, Manifest(0, 1.0, 2))
    assert outbox.has(0)
    assert outbox.latest() == Manifest(0, 1.0, 2)


def test_what_a_crash_left_in_staging_is_replaced(outbox: Outbox) -> None:
    (outbox.stage(0) / "torn").touch()
    assert list(outbox.stage(0).iterdir()) == []


def test_empty_files_are_dropped_and_counts_are_exact(outbox: Outbox) -> None:
    deliver(outbox, 0, [3, 0, 4])
    assert [n for _, n in outbox.manifest(0).files["to.b"]] == [3, 4]
    assert len(list((outbox.folder(0) / "to.b").iterdir())) == 2


def test_shared_files_outlive_the_first_reader(outbox: Outbox, tmp_path: Path) -> None:
    deliver(outbox, 0, [3])
    share(outbox.folder(0) / "to.b", [outbox.folder(0) / "to.c"])
    discard(list((outbox.folder(0) / "to.b").iterdir()))
    assert not (outbox.folder(0) / "to.b").exists()
    assert len(list((outbox.folder(0) / "to.c").iterdir())) == 1


def test_a_sweep_keeps_what_has_readers_and_the_newest(outbox: Outbox) -> None:
    for batch in range(3):
        deliver(outbox, batch, [1])
    for batch in (0, 2):
        discard(list((outbox.folder(batch) / "to.b").iterdir()))
    outbox.sweep()
    assert outbox.batches() == [1, 2]


def test_a_sweep_looks_once_at_what_a_sink_keeps(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for batch in range(4):
        deliver(outbox, batch, [1])
        (outbox.folder(batch) / "sink.out").mkdir()
        if batch != 1:
            discard(list((outbox.folder(batch) / "to.b").iterdir()))
    looked: list[str] = []
    monkeypatch.setattr(
        "os.listdir",
        lambda path, listdir=os.listdir: (looked.append(Path(path).name), listdir(path))[1],
    )
    outbox.sweep()
    outbox.sweep()
    assert looked == ["a", "b-0", "b-1", "b-2", "a", "b-1"]
    assert outbox.batches() == [0, 1, 2, 3]


def test_a_batch_swept_between_listing_and_reading_holds_nothing(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(outbox, 0, [3])
    deliver(outbox, 1, [4])
    inbox = Inbox(outbox.root.parent, "b", ["a"])
    discard([p.path for p in inbox.pieces("a", Position(), Position(0, 1))])
    listed = outbox.batches()
    outbox.sweep()
    monkeypatch.setattr(Outbox, "batches", lambda self, start=0: listed)
    assert [(p.events, p.after) for p in inbox.pieces("a", Position(0, 1))] == [(4, Position(1, 1))]
    (outbox.folder(1) / "manifest.json").unlink()
    with pytest.raises(PipelineFailed, match="cannot be read"):
        inbox.pieces("a", Position(0, 1))


def test_a_limit_takes_whole_files_oldest_first_and_at_least_one(outbox: Outbox) -> None:
    deliver(outbox, 0, [5, 5], at=1.0)
    deliver(outbox, 1, [50], at=2.0)
    inbox = Inbox(outbox.root.parent, "b", ["a"])
    first = inbox.advance(inbox.start(), limit=7)
    second = inbox.advance(first, limit=7)
    third = inbox.advance(second, limit=7)
    assert [p.events for p in inbox.between(inbox.start(), first)["a"]] == [5]
    assert [p.events for p in inbox.between(first, second)["a"]] == [5]
    assert [p.events for p in inbox.between(second, third)["a"]] == [50]
    assert inbox.advance(third, limit=7) == third
    assert inbox.between(third, third) == {}


@given(st.lists(st.lists(st.integers(1, 5), max_size=3), max_size=5), st.integers(1, 12))
@settings(deadline=None, max_examples=20)
def test_every_file_is_taken_once_whatever_the_limit(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], limit: int
) -> None:
    outbox = Outbox(tmp_path_factory.mktemp("edges") / "a")
    outbox.create()
    for i, counts in enumerate(batches):
        deliver(outbox, i, counts)
    inbox = Inbox(outbox.root.parent, "b", ["a"])
    at, taken = inbox.start(), []
    while (reached := inbox.advance(at, limit)) != at:
        taken += [p.path for p in inbox.between(at, reached)["a"]]
        at = reached
    assert len(taken) == len(set(taken)) == sum(len(counts) for counts in batches)


def test_a_vanished_outbox_is_one_sentence(outbox: Outbox) -> None:
    outbox.root.rmdir()
    for call in (outbox.latest, lambda: outbox.has(3), outbox.batches):
        with pytest.raises(PipelineFailed, match="is gone: nothing was deleted"):
            call()


def test_an_outbox_that_vanished_while_spark_wrote_is_one_sentence(outbox: Outbox) -> None:
    """Spark makes the folders it writes to, so the next batch would lie in a new directory, without
    those that still wait.
    """
    deliver(outbox, 0, [1])
    outbox.root.rename(outbox.root.with_name("hidden"))
    outbox.create()
    with pytest.raises(
        PipelineFailed, match=r"batch 0 has vanished from the edge directory .*nothing was deleted"
    ):
        deliver(outbox, 1, [1])


def test_an_input_that_was_added_is_read_from_its_beginning(outbox: Outbox) -> None:
    deliver(outbox, 0, [3])
    new = Outbox(outbox.root.with_name("new"))
    new.create()
    deliver(new, 0, [4])
    inbox = Inbox(outbox.root.parent, "b", ["a", "new"])
    reached = inbox.advance({"a": "0.1"}, limit=100)
    assert reached == {"a": "0.1", "new": "0.1"}
    assert [p.events for p in inbox.between({"a": "0.1"}, reached)["new"]] == [4]
    assert inbox.between({"a": "0.0"}, {"a": "0.1"}).keys() == {"a"}


def test_a_torn_manifest_is_one_sentence(outbox: Outbox) -> None:
    deliver(outbox, 0, [1])
    (outbox.folder(0) / "manifest.json").write_text("{")
    with pytest.raises(PipelineFailed, match=r"manifest\.json cannot be read"):
        outbox.latest()


def test_totals_add_up() -> None:
    assert plus({}, {"a": 1}) == {"a": 1}
    assert plus({"a": 1, "b": 2}, {"b": 3, "c": 4}) == {"a": 1, "b": 5, "c": 4}
