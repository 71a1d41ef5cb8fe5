"""Delivery by one rename, replay, exact counts, admission, cleaning up: files only, no Spark."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.errors import PipelineFailed
from foretide.spark.edge.inbox import Inbox
from foretide.spark.edge.outbox import Outbox, share, tidy
from foretide.spark.edge.protocol import Manifest, Position, plus


def discard(outbox: Outbox, batch: int) -> None:
    """What reader b does when it is done with a batch."""
    inbox = Inbox(outbox.root.parent, "b", [outbox.root.name])
    inbox.discard(inbox.pieces(outbox.root.name, Position(batch, 0), Position(batch, 99)))


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
    share((outbox.folder(0) / "to.b").iterdir(), [outbox.folder(0) / "to.c"])
    discard(outbox, 0)
    assert not (outbox.folder(0) / "to.b").exists()
    assert len(list((outbox.folder(0) / "to.c").iterdir())) == 1


def test_a_sweep_keeps_what_has_readers_and_the_newest(outbox: Outbox) -> None:
    for batch in range(3):
        deliver(outbox, batch, [1])
    for batch in (0, 2):
        discard(outbox, batch)
    outbox.sweep()
    assert outbox.batches() == [1, 2]


def test_a_sweep_looks_once_at_what_a_sink_keeps(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for batch in range(4):
        deliver(outbox, batch, [1])
        (outbox.folder(batch) / "sink.out").mkdir()
        if batch != 1:
            discard(outbox, batch)
    looked: list[str] = []
    listdir = os.listdir

    def counted(path: Path) -> list[str]:
        looked.append(Path(path).name)
        return listdir(path)

    monkeypatch.setattr("os.listdir", counted)
    outbox.sweep()
    outbox.sweep()
    assert looked == ["a", "b-0", "b-1", "b-2", "b-1"]
    assert outbox.batches() == [0, 1, 2, 3]


def test_a_batch_swept_between_listing_and_reading_holds_nothing(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(outbox, 0, [3])
    deliver(outbox, 1, [4])
    inbox = Inbox(outbox.root.parent, "b", ["a"])
    inbox.discard(inbox.pieces("a", Position(), Position(0, 1)))
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
        taken += [p.name for p in inbox.between(at, reached)["a"]]
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


def counted(real: Any, method: str, seen: list[str]) -> Any:
    """The same function, which notes its name."""

    def call(path: Path, *rest: Any) -> Any:
        seen.append(method)
        return real(path, *rest)

    return call


def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every listing and every file that is opened or looked up from here on."""
    seen: list[str] = []
    for name in ("os.listdir", "pathlib.Path.exists", "pathlib.Path.read_bytes"):
        owner, _, method = name.rpartition(".")
        real = getattr(os if owner == "os" else Path, method)
        monkeypatch.setattr(name, counted(real, method, seen))
    return seen


def test_a_look_costs_the_same_however_many_batches_a_sink_keeps(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = Inbox(outbox.root.parent, "b", ["a"])
    costs: dict[int, tuple[int, int]] = {}
    at = inbox.start()
    for batch in range(400):
        deliver(outbox, batch, [1])
        (outbox.folder(batch) / "sink.out").mkdir()
        reached = inbox.advance(at, 100)
        inbox.discard(inbox.between(at, reached)["a"])
        at = reached
        if batch in (20, 399):
            with monkeypatch.context() as patch:
                seen = calls(patch)
                assert inbox.advance(at, 100) == at
                looked = len(seen)
                outbox.sweep()
                costs[batch] = looked, len(seen) - looked
                assert "listdir" not in seen[:looked]
        else:
            outbox.sweep()
    assert costs[399] == costs[20]
    assert costs[20][0] <= 6


def test_an_idle_reader_passes_what_holds_nothing_for_it_once(outbox: Outbox) -> None:
    """A router that never sends here: the reader's offsets stay at the beginning for ever."""
    inbox = Inbox(outbox.root.parent, "idle", ["a"])
    for batch in range(50):
        deliver(outbox, batch, [1])
        assert inbox.advance(inbox.start(), 100) == inbox.start()
    assert list(inbox._batches("a", Position(), None)) == [49]
    staging = outbox.stage(50)
    (staging / "to.idle").mkdir()
    files = {"to.idle": (("x", 3),)}
    outbox.deliver(staging, Manifest(50, 0.0, 1, {}, {"to.idle": 3}, files))
    assert inbox.advance(inbox.start(), 100) == {"a": "50.1"}


def test_a_sweep_looks_at_a_bounded_number_and_gets_round(outbox: Outbox) -> None:
    for batch in range(350):
        deliver(outbox, batch, [1])
    for batch in range(0, 349, 2):
        discard(outbox, batch)
    for _ in range(5):
        outbox.sweep()
    assert outbox.batches() == [*range(1, 349, 2), 349]
    assert outbox.newest() == 349


def test_the_newest_is_found_with_a_stale_or_missing_hint(outbox: Outbox) -> None:
    for batch in range(5):
        deliver(outbox, batch, [1])
    assert outbox.newest() == 4
    (outbox.root / "newest").write_text("3")
    assert outbox.newest() == 4, "a crash between the rename and the hint"
    (outbox.root / "newest").unlink()
    assert outbox.newest() == 4
    (outbox.root / "newest").write_text("0")
    Outbox(outbox.root).renew_hint()
    assert (outbox.root / "newest").read_text() == "4"


def test_every_start_stages_under_a_name_of_its_own(outbox: Outbox) -> None:
    """Tasks of an earlier start that are still at work must not write into the new one's batch."""
    old = outbox.stage(3)
    again = Outbox(outbox.root)
    new = again.stage(3)
    assert old.name != new.name
    assert not old.exists(), "what crashes left is removed by the first batch of a start"
    old.mkdir()
    assert again.stage(4).exists()
    assert old.exists(), "later ones leave alone what an old task makes again"


def test_with_power_data_is_synced_before_the_rename_and_the_name_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = Outbox(tmp_path / "a", "power")
    outbox.create()
    seen: list[str] = []
    monkeypatch.setattr(
        "foretide.spark.edge.outbox.sync_all",
        lambda path: seen.append(f"all with {sorted(p.name for p in path.iterdir())}"),
    )
    monkeypatch.setattr(
        "foretide.spark.edge.outbox.sync",
        lambda path: seen.append(f"{path.name} with {sorted(p.name for p in path.iterdir())}"),
    )
    deliver(outbox, 0, [1])
    assert seen == ["all with ['manifest.json', 'to.b']", "a with ['b-0']"]
    assert outbox.latest() is not None
