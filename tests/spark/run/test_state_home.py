"""The state stores that a checkpoint holds."""

from pathlib import Path

from foretide.spark.run.state_home import stores


def test_stores_are_those_of_the_checkpoint(tmp_path: Path) -> None:
    for operator, partition in ((0, 0), (0, 1), (1, 0)):
        (tmp_path / f"state/{operator}/{partition}").mkdir(parents=True)
        (tmp_path / f"state/{operator}/{partition}/1.delta").touch()
    (tmp_path / "state/1/0/left-keyToNumValues").mkdir()
    (tmp_path / "state/1/0/right-keyToNumValues").mkdir()
    (tmp_path / "state/0/_metadata").mkdir()
    assert list(stores(tmp_path)) == [
        (0, 0, "default"),
        (0, 1, "default"),
        (1, 0, "left-keyToNumValues"),
        (1, 0, "right-keyToNumValues"),
    ]


def test_a_query_without_state_has_none(tmp_path: Path) -> None:
    assert list(stores(tmp_path)) == []
