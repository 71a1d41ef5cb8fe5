"""``foretide run``: what it makes of options and of a settings file, without starting Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from foretide.cli import app
from foretide.errors import ForetideError
from foretide.journal import Run
from foretide.model import Decision
from foretide.spark.control.live import LiveRun

MINE = """
from foretide.load import load
from foretide.spark import Pipeline

pipeline = Pipeline("mine")
pipeline.source("numbers", load("erratic"))
lost = Pipeline("lost")


@pipeline.operator(inputs="numbers", schema="id long")
def same(event):
    return event


@lost.operator(inputs="nobody", schema="id long")
def alone(event):
    return event
"""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[LiveRun]:
    """The runs that would have started."""
    found: list[LiveRun] = []

    def go(self: LiveRun, *_: object, **__: object) -> tuple[Run, list[Decision]]:
        found.append(self)
        return Run("mine", self.system.name, self.pipeline.topology(), self.window_s, 0.0), []

    monkeypatch.setattr(LiveRun, "go", go)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    return found


def run(*arguments: str) -> None:
    result = CliRunner().invoke(app, ["run", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def test_without_settings_it_advises_under_pa_sps(started: list[LiveRun]) -> None:
    run("mine.py:pipeline")
    (live,) = started
    assert (live.system.name, live.mode, live.window_s, live.target_latency_s) == (
        "pa-sps",
        "advise",
        10.0,
        None,
    )
    assert live.folder == Path("runs/mine")


def test_a_settings_file_brings_guards_prices_and_the_rest(
    started: list[LiveRun], tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(
        'mode = "act"\nwindow_s = 5\ntarget_latency_s = 8\nruns_dir = "kept"\n[prices]\nup = 1.0\n'
        "[system.guards.cool-down]\nseconds = 120\n"
    )
    run("mine.py:pipeline", "--settings", "mine.toml")
    run(
        "mine.py:pipeline",
        "--settings",
        "mine.toml",
        "--system",
        "ds2",
        "--mode",
        "advise",
        "--window",
        "20",
        "--target",
        "9",
    )
    live, other = started
    assert (live.system.name, live.mode, live.window_s, live.target_latency_s) == (
        "pa-sps",
        "act",
        5.0,
        8.0,
    )
    assert (live.folder, live.prices.up) == (Path("kept/mine"), 1.0)
    assert (other.system.name, other.mode, other.window_s, other.target_latency_s) == (
        "ds2",
        "advise",
        20.0,
        9.0,
    )
    assert live.system.guards["cool-down"] == other.system.guards["cool-down"] == {"seconds": 120}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("mine.py:pipeline", "--target", "-1"), "latency target is more than 0 seconds"),
        (("mine.py:pipeline", "--system", "sera"), "did you mean 'srea'"),
        (("mine.py:lost",), "reads from 'nobody', which does not exist"),
        (("none.py:pipeline",), "there is no file none.py"),
        (("./mine:pipeline",), "cannot load ./mine: TypeError"),
        (("syntax.py:pipeline",), "cannot load syntax.py: SyntaxError: invalid syntax"),
        (
            ("name.py:pipeline",),
            r"cannot load name.py: NameError: name 'y' is not defined \(.*name.py, line 2\)",
        ),
    ],
)
def test_mistakes_are_sentences_before_spark_starts(
    arguments: tuple[str, ...], says: str, started: list[LiveRun], tmp_path: Path
) -> None:
    (tmp_path / "syntax.py").write_text("x = = 1\n")
    (tmp_path / "name.py").write_text("\nx = y\n")
    with pytest.raises(ForetideError, match=says):
        run(*arguments)
    assert started == []
