"""The demo's folder: only what an earlier demo made is removed, and never under a run."""

import fcntl
from pathlib import Path

import pytest

from foretide.demo.folder import MARKER, demo_folder
from foretide.errors import InvalidConfig
from foretide.learned import forecasts_path, learned_path


def old_demo(folder: Path) -> Path:
    (folder / "pipeline").mkdir(parents=True)
    for name in (MARKER, "spark.log", "journal.jsonl", "tweets.sqlite", "pipeline/lock"):
        (folder / name).write_text("old")
    for path in (learned_path, forecasts_path):  # or it goes on with what the older one learned
        path(folder / "journal.jsonl", "any").write_text("old")
    return folder


def test_an_older_demo_is_replaced_and_other_files_stay(tmp_path: Path) -> None:
    folder = old_demo(tmp_path / "demo")
    (folder / "notes.txt").write_text("mine")
    (folder / "thesis").mkdir()
    with demo_folder(folder):
        assert sorted(p.name for p in folder.iterdir()) == [MARKER, "notes.txt", "thesis"]
        (folder / "spark.log").write_text("new")
    assert (folder / "spark.log").read_text() == "new"


def test_a_new_folder_is_marked(tmp_path: Path) -> None:
    with demo_folder(tmp_path / "runs" / "demo") as folder:
        assert (folder / MARKER).is_file()


@pytest.mark.parametrize("name", ["spark.log", "thesis.tex", "pipeline/pipeline.json"])
def test_a_folder_that_the_demo_did_not_make_is_left_alone(name: str, tmp_path: Path) -> None:
    """A log of the same name, or a pipeline of the same name, is no demo."""
    mine = tmp_path / "mine" / name
    mine.parent.mkdir(parents=True)
    mine.write_text('{"name": "tweets", "started_at": 1.0}')
    with pytest.raises(InvalidConfig, match="not an older demo"), demo_folder(tmp_path / "mine"):
        pass
    assert mine.read_text() == '{"name": "tweets", "started_at": 1.0}'


def test_a_running_demo_is_not_removed(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with (
        demo_folder(folder),
        pytest.raises(InvalidConfig, match="a demo is running"),
        demo_folder(folder),
    ):
        pass


def test_nothing_is_removed_under_a_running_pipeline(tmp_path: Path) -> None:
    folder = old_demo(tmp_path / "demo")
    with open(folder / "pipeline" / "lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InvalidConfig, match="a demo is running"), demo_folder(folder):
            pass
    assert (folder / "tweets.sqlite").exists()


def test_a_file_and_a_place_that_cannot_be_written_are_sentences(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(InvalidConfig, match="is a file: give a directory"),
        demo_folder(tmp_path / "file"),
    ):
        pass
    with (
        pytest.raises(InvalidConfig, match="choose one you can write to"),
        demo_folder(tmp_path / "file" / "below"),
    ):
        pass
