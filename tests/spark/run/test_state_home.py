"""The state stores that a checkpoint holds."""

from pathlib import Path
from typing import Any

import pytest

from foretide.spark.run.state_home import move_state, stores


def test_stores_are_those_of_the_checkpoint(tmp_path: Path) -> None:
    for operator, partition in ((0, 0), (0, 1), (1, 0)):
        (tmp_path / f"state/{operator}/{partition}").mkdir(parents=True)
        (tmp_path / f"state/{operator}/{partition}/1.delta").touch()
    (tmp_path / "state/1/0/left-keyToNumValues").mkdir()
    (tmp_path / "state/1/0/right-keyToNumValues").mkdir()
    (tmp_path / "state/0/0/SSTs").mkdir()
    (tmp_path / "state/0/_metadata").mkdir()
    (tmp_path / "state/2/0/_metadata").mkdir(parents=True)  # a schema before the first batch
    assert list(stores(tmp_path)) == [
        (0, 0, "default"),
        (0, 1, "default"),
        (1, 0, "left-keyToNumValues"),
        (1, 0, "right-keyToNumValues"),
    ]


def test_a_query_without_state_has_none(tmp_path: Path) -> None:
    assert list(stores(tmp_path)) == []


class Refusing:
    """A query and a session in one, of a Spark that has no such coordinator."""

    name = "totals"

    def __getattr__(self, name: str) -> object:
        raise AttributeError(f"no {name} here")


def test_a_spark_without_that_coordinator_leaves_the_state_where_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spark: Any = Refusing()
    assert move_state(spark, spark, tmp_path, ("executor_h_1",)) == 0
    assert "the state of query 'totals' stays where it is" in caplog.text
