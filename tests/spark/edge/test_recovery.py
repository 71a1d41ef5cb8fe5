"""A start over what a crash, an old copy or a power cut left: healed, or refused before anything is
deleted.
"""

from pathlib import Path

import pytest

from foretide.errors import PipelineFailed
from foretide.spark.edge.checkpoint import Checkpoint
from foretide.spark.edge.outbox import Outbox
from foretide.spark.edge.protocol import Manifest
from foretide.spark.edge.recovery import Place, recover


class Disk:
    """Operators a -> b: a's batches 0..delivered, b has read up to ``read`` of them."""

    def __init__(self, root: Path, delivered: int, logged: int, committed: int, read: str) -> None:
        self.root = root
        self.outbox = Outbox(root / "edges" / "a")
        self.outbox.create()
        for batch in range(delivered + 1):
            self.outbox.deliver(self.outbox.stage(batch), Manifest(batch, 1.0, 1))
        for batch in range(logged + 1):
            self.put("a", "offsets", batch, 'v1\n{"batchTimestampMs":1}\n{"events":5}')
        for batch in range(committed + 1):
            self.put("a", "commits", batch, 'v1\n{"nextBatchWatermarkMs":0}')
        self.put("b", "offsets", 0, f'v1\n{{"batchTimestampMs":1}}\n{{"a":"{read}"}}')
        other = Outbox(root / "edges" / "b")
        other.create()
        other.deliver(other.stage(0), Manifest(0, 1.0, 1))

    def put(self, operator: str, kind: str, batch: int, text: str) -> Path:
        file = self.root / "checkpoints" / operator / kind / str(batch)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def empty_manifest(self, batch: int) -> None:
        (self.outbox.folder(batch) / "manifest.json").write_bytes(b"")

    def recover(self, written_out: bool = False) -> None:
        edges, logs = self.root / "edges", self.root / "checkpoints"
        recover(
            {
                "a": Place("a", Checkpoint(logs / "a"), Outbox(edges / "a"), (), written_out),
                "b": Place("b", Checkpoint(logs / "b"), Outbox(edges / "b"), ("a",)),
            }
        )

    def files(self) -> set[Path]:
        return set(self.root.rglob("*"))


@pytest.mark.parametrize(
    ("delivered", "logged", "committed"),
    [(3, 4, 4), (3, 5, 3), (4, 3, 3), (3, 4, 5)],
    ids=["one committed batch older", "two logged ahead", "log is old", "commits ahead"],
)
def test_edges_and_checkpoint_of_two_moments_are_refused_before_anything_is_deleted(
    tmp_path: Path, delivered: int, logged: int, committed: int
) -> None:
    disk = Disk(tmp_path, delivered, logged, committed, "1.1")
    before = disk.files()
    with pytest.raises(PipelineFailed, match="lost or an old copy: nothing was deleted"):
        disk.recover()
    assert disk.files() == before


@pytest.mark.parametrize(("delivered", "committed"), [(4, 4), (4, 3), (3, 3)])
def test_a_start_goes_on_from_any_moment_of_a_batch(
    tmp_path: Path, delivered: int, committed: int
) -> None:
    disk = Disk(tmp_path, delivered, 4, committed, "1.1")
    disk.recover()
    assert disk.outbox.newest() == delivered


def test_an_empty_newest_manifest_is_healed_when_the_batch_comes_again(tmp_path: Path) -> None:
    disk = Disk(tmp_path, delivered=4, logged=4, committed=3, read="3.1")
    disk.empty_manifest(4)
    disk.recover()
    assert disk.outbox.newest() == 3
    assert not disk.outbox.has(4), "Spark replays batch 4 and it is delivered anew"


@pytest.mark.parametrize("why", ["committed", "read by its consumer", "written out", "not newest"])
def test_it_is_refused_when_somebody_may_have_used_the_batch(tmp_path: Path, why: str) -> None:
    committed = 4 if why == "committed" else 3
    read = "4.1" if why == "read by its consumer" else "3.1"
    disk = Disk(tmp_path, delivered=4, logged=4, committed=committed, read=read)
    torn = 3 if why == "not newest" else 4
    disk.empty_manifest(torn)
    before = disk.files()
    disk.recover(written_out=why == "written out")
    with pytest.raises(PipelineFailed, match=r"manifest\.json cannot be read"):
        disk.outbox.manifest(torn)
    assert {f for f in before - disk.files() if f.name.startswith("b-")} == set()


def test_a_torn_log_of_a_batch_that_was_not_delivered_is_planned_again(tmp_path: Path) -> None:
    disk = Disk(tmp_path, delivered=3, logged=4, committed=3, read="1.1")
    torn = disk.put("a", "offsets", 4, "")
    checksum = disk.put("a", "offsets", 4, "").with_name(".4.crc")
    checksum.write_bytes(b"crc")
    disk.recover()
    assert not torn.exists()
    assert not checksum.exists()


def test_a_torn_commit_of_a_delivered_batch_is_made_again(tmp_path: Path) -> None:
    disk = Disk(tmp_path, delivered=4, logged=4, committed=4, read="1.1")
    torn = disk.put("a", "commits", 4, "")
    disk.recover()
    assert not torn.exists()


def test_a_torn_log_of_a_delivered_batch_is_refused(tmp_path: Path) -> None:
    disk = Disk(tmp_path, delivered=4, logged=4, committed=3, read="1.1")
    disk.put("a", "offsets", 4, "")
    before = disk.files()
    with pytest.raises(PipelineFailed, match=r"offsets/4 cannot be read .*nothing was deleted"):
        disk.recover()
    assert disk.files() == before


def test_torn_metadata_of_a_pipeline_that_never_ran_is_removed(tmp_path: Path) -> None:
    place = Place("a", Checkpoint(tmp_path / "c"), Outbox(tmp_path / "edges" / "a"))
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "metadata").write_bytes(b"")
    recover({"a": place})
    assert not (tmp_path / "c" / "metadata").exists()
