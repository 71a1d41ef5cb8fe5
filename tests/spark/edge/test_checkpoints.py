"""Offsets of a batch from Spark's log; a torn log is one sentence."""

from pathlib import Path

import pytest

from foretide.errors import PipelineFailed
from foretide.spark.edge.checkpoint import Checkpoint, Offsets


def log(root: Path, batch: int, *lines: str) -> None:
    (root / "offsets").mkdir(exist_ok=True)
    (root / "offsets" / str(batch)).write_text("\n".join(["v1", "{}", *lines]))


def test_offsets_of_a_batch_start_where_the_last_one_ended(tmp_path: Path) -> None:
    log(tmp_path, 0, '{"events":5}', "-")
    log(tmp_path, 1, '{"events":9}', '{"a":"0.1"}')
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.last_batch() == 1
    assert checkpoint.offsets(0) == Offsets((None, None), ({"events": 5}, None))
    assert checkpoint.offsets(1) == Offsets(({"events": 5}, None), ({"events": 9}, {"a": "0.1"}))


def test_no_checkpoint_yet_is_fine(tmp_path: Path) -> None:
    Checkpoint(tmp_path).check()
    assert Checkpoint(tmp_path).last_batch() is None


@pytest.mark.parametrize("text", ["", "v1\n{}\nnot json", "\x00\x00\x00"])
def test_an_unreadable_checkpoint_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text(text)
    with pytest.raises(PipelineFailed, match=r"cannot be read .*nothing was deleted; restore"):
        Checkpoint(tmp_path).check()
    assert (tmp_path / "offsets" / "3").exists()


@pytest.mark.parametrize("name", ["metadata", "commits/0"])
def test_so_is_any_other_file_that_spark_goes_on_from(tmp_path: Path, name: str) -> None:
    log(tmp_path, 0, '{"events":5}')
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    (tmp_path / "commits" / ".0.crc").write_text("crc")
    (tmp_path / "metadata").write_text('{"id":"4654317a-12d3-41ad-bfd6-b53f70d3e9a4"}')
    Checkpoint(tmp_path).check()
    (tmp_path / name).write_text("{tor")
    with pytest.raises(PipelineFailed, match=rf"{name} cannot be read .*nothing was deleted"):
        Checkpoint(tmp_path).check()
