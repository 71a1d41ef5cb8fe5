"""The demo's own decisions; that it runs on Spark is shown by the example under the loop, which takes the same way."""

from pathlib import Path

import pytest

from foretide.demo import WINDOW_S, clear, demo_system
from foretide.errors import InvalidConfig
from foretide.systems import SYSTEMS


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_plans_often_enough_for_two_minutes(name: str) -> None:
    assert demo_system(name).cadence.plan_every * WINDOW_S <= 10


def test_only_an_older_demo_is_removed(tmp_path: Path) -> None:
    clear(tmp_path / "new")
    old = tmp_path / "old" / "pipeline"
    old.mkdir(parents=True)
    (old / "pipeline.json").touch()
    clear(tmp_path / "old")
    assert not old.exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(InvalidConfig, match="choose an empty folder"):
        clear(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()
