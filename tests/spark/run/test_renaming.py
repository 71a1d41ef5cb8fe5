"""An operator that changed its name in one folder: refused, or renamed on disk."""

import json
from pathlib import Path

import pytest

from foretide.errors import InvalidConfig
from foretide.spark.run.renaming import check_names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What ``first -> middle -> last`` leaves behind."""
    for name, producer, consumer in (
        ("first", None, "middle"),
        ("middle", "first", "last"),
        ("last", "middle", None),
    ):
        offsets = tmp_path / "checkpoints" / name / "offsets"
        offsets.mkdir(parents=True)
        position = {producer: "0.1"} if producer else {"events": 7}
        (offsets / "0").write_text("v1\n{}\n" + json.dumps(position))
        (offsets / ".0.crc").write_text("checksum")
        batch = tmp_path / "edges" / name / "b-0"
        batch.mkdir(parents=True)
        reader = f"to.{consumer}" if consumer else "sink.out"
        (batch / reader).mkdir()
        manifest = {
            "batch": 0,
            "at": 1.0,
            "replicas": 1,
            "consumed": {producer or "events": 7},
            "delivered": {reader: 7},
            "files": {reader: [["a.parquet", 7]]},
        }
        (batch / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "replicas.json").write_text('{"first": 1, "middle": 3, "last": 1}')
    (tmp_path / "limit.middle").write_text("10")
    return tmp_path


def test_a_renamed_operator_is_refused_with_the_choice(folder: Path) -> None:
    with pytest.raises(
        InvalidConfig,
        match=r"holds the progress of operator 'middle'.*nothing of 'centre'.*keep the old name "
        r"or declare the operator with formerly='middle'.*start anew in another directory",
    ):
        check_names(folder, {"first": None, "centre": None, "last": None})


@pytest.mark.parametrize(
    "declared",
    [
        {"first": None, "middle": None, "last": None},
        {"first": None, "middle": None},
        {"first": None, "middle": None, "last": None, "added": None},
    ],
)
def test_the_same_operators_fewer_or_more_are_accepted(
    folder: Path, declared: dict[str, str | None]
) -> None:
    before = sorted(folder.rglob("*"))
    check_names(folder, declared)
    assert sorted(folder.rglob("*")) == before


def test_a_former_name_is_renamed_wherever_it_is_written(folder: Path) -> None:
    for _ in range(2):  # the declaration stays in the user's code
        check_names(folder, {"first": None, "centre": "middle", "last": None})
    assert "middle" not in "\n".join(str(p) for p in folder.rglob("*"))
    assert not [p for p in folder.rglob("*") if p.is_file() and "middle" in p.read_text()]
    first = json.loads((folder / "edges" / "first" / "b-0" / "manifest.json").read_text())
    assert first["delivered"] == {"to.centre": 7}
    assert first["files"] == {"to.centre": [["a.parquet", 7]]}
    last = json.loads((folder / "edges" / "last" / "b-0" / "manifest.json").read_text())
    assert last["consumed"] == {"centre": 7}
    offsets = folder / "checkpoints" / "last" / "offsets"
    assert (offsets / "0").read_text().splitlines()[-1] == '{"centre": "0.1"}'
    assert not (offsets / ".0.crc").exists()
    assert json.loads((folder / "replicas.json").read_text())["centre"] == 3


def test_a_rename_that_a_crash_cut_off_is_finished(folder: Path) -> None:
    (folder / "edges" / "middle").rename(folder / "edges" / "centre")
    check_names(folder, {"first": None, "centre": "middle", "last": None})
    assert (folder / "checkpoints" / "centre").is_dir()
    assert (folder / "edges" / "first" / "b-0" / "to.centre").is_dir()


def test_operators_whose_edges_are_topics_keep_their_names(folder: Path) -> None:
    (folder / "kafka.json").write_text('{"prefix": "p"}')
    declared = {"first": None, "centre": "middle", "last": None}
    with pytest.raises(InvalidConfig, match="'centre' cannot take over from 'middle': the topics"):
        check_names(folder, declared)
    assert (folder / "checkpoints" / "middle").is_dir()
    check_names(folder, {"first": None, "middle": "before", "last": None})
