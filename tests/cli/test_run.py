"""``foretide run``: what it makes of options and of a settings file, without starting Spark."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from foretide.apps import APPS
from foretide.cli import app
from foretide.cli.live import sentences
from foretide.demo import MARKER
from foretide.errors import ForetideError, InvalidConfig, MissingExtra, PipelineFailed
from foretide.journal import Run
from foretide.model import Decision
from foretide.spark.control.java import check_java
from foretide.spark.control.live import LiveRun
from foretide.spark.declare.generator import Generator

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


def test_without_settings_it_advises_under_foretide(started: list[LiveRun]) -> None:
    run("mine.py:pipeline")
    (live,) = started
    assert (live.system.name, live.mode, live.window_s, live.target_latency_s) == (
        "foretide",
        "advise",
        10.0,
        None,
    )
    assert live.folder == Path("runs/mine")
    assert live.share == 0.99


def test_a_source_without_a_stamp_says_what_latency_leaves_out(started: list[LiveRun]) -> None:
    external = MINE.replace('load("erratic")', 'lambda spark: spark.readStream.load("in")')
    Path("external.py").write_text(external)
    said = [
        CliRunner().invoke(app, ["run", name], catch_exceptions=False).output
        for name in ("mine.py:pipeline", "external.py:pipeline")
    ]
    assert ["has no stamp" in text for text in said] == [False, True]
    assert "source 'numbers' has no stamp: latency counts from when a batch" in said[1]


def test_spark_s_own_page_comes_with_the_dashboard(started: list[LiveRun]) -> None:
    run("mine.py:pipeline")
    run("mine.py:pipeline", "--dashboard", "--port", "0")
    run("mine.py:pipeline", "--dashboard", "--port", "0", "--conf", "spark.ui.enabled=false")
    assert [live.spark_settings.get("spark.ui.enabled") for live in started] == [
        None,
        "true",
        "false",
    ]


@pytest.mark.parametrize("name", APPS)
def test_every_app_starts_as_a_pipeline_under_a_system(name: str, started: list[LiveRun]) -> None:
    run("--app", name, "--system", "drs", "--target", "9")
    (live,) = started
    assert live.pipeline.topology().names == APPS[name].topology.names
    assert live.folder == Path("runs") / name
    assert live.system.planner_constants["t_max_s"] == 9.0
    assert live.preload == ("foretide.spark.declare.described",)


def test_an_app_runs_under_another_load(started: list[LiveRun], tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text("timestamp,rate\n0,10\n60,40\n")
    run("--app", "chain", "--load", "steps.csv", "--speed", "0.5", "--scale", "2")
    source = started[0].pipeline.sources["load-first"].open
    assert isinstance(source, Generator)
    assert (source.load.counts.tolist(), source.load.interval_s) == ([20.0, 80.0], 2.0)


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
        "foretide",
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
        (("mine.py:pipeline", "--share", "99"), "--share 99: give a number between 0 and 1"),
        (("mine.py:pipeline", "--quantile", "1"), "--quantile 1: give a number between 0 and 1"),
        (("mine.py:pipeline", "--forecaster", "atuo"), "did you mean 'auto'"),
        (("mine.py:pipeline", "--conf", "spark.ui.enabled"), "write KEY=VALUE"),
        (("mine.py:pipeline", "--folder", "s3a://bucket/run"), "is not a directory path"),
        (("mine.py:pipeline", "--folder", "mine.py"), "is a file: give a directory"),
        (("mine.py:pipeline", "--folder", "/proc/mine"), "cannot be made: .*you can write to"),
        (("mine.py:pipeline", "--folder", "demo"), "belongs to foretide demo"),
        (("mine.py:lost",), "reads from 'nobody', which does not exist"),
        (("none.py:pipeline",), "there is no file none.py"),
        ((), "nothing to run: give MODULE:PIPELINE, or --app NAME"),
        (("--app", "chian"), "did you mean 'chain'"),
        (("mine.py:pipeline", "--app", "chain"), "or --app chain, not both"),
        (("mine.py:pipeline", "--load", "stable"), "--load and --work go with --app"),
        (("--app", "chain", "--work", "wiat"), "did you mean 'wait'"),
        (("--app", "chain", "--load", "stabel"), "did you mean 'stable'"),
        (("--app", "chain", "--scale", "0"), "--scale 0.0: the factor on the counts must be > 0"),
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
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / MARKER).touch()
    with pytest.raises(ForetideError, match=says):
        run(*arguments)
    assert started == []


def test_options_change_parts_of_the_system_and_reach_spark(started: list[LiveRun]) -> None:
    run(
        "mine.py:pipeline", "--system", "ds2", "--forecaster", "auto", "--quantile", "0.9",
        "--packages", "org.x:y:1", "--conf", "spark.executor.memory=2g", "--share", "0.95",
    )  # fmt: skip
    (live,) = started
    assert (live.system.forecaster, live.system.quantile, live.share) == ("auto", 0.9, 0.95)
    assert live.spark_settings == {
        "spark.executor.memory": "2g",
        "spark.jars.packages": "org.x:y:1",
    }


def test_careful_settings_ship_with_the_package(started: list[LiveRun]) -> None:
    run("mine.py:pipeline", "--settings", "careful")
    run("mine.py:pipeline", "--settings", "careful.toml", "--mode", "advise")
    careful, advised = started
    assert (careful.mode, advised.mode) == ("act", "advise")
    assert careful.system.guards["patience"] == {"windows": 6}
    assert careful.system.guards["budget"] == {"total": 32}


def test_a_missing_extra_is_refused_before_spark_starts(
    started: list[LiveRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    for name in [n for n in sys.modules if n.startswith("foretide.forecast.recurrent")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtra, match=r"needs jax.*pip install 'foretide\[deep\]'"):
        run("mine.py:pipeline", "--system", "bgelasor")
    assert started == []


def test_no_java_and_an_old_java_are_sentences(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InvalidConfig, match="Spark needs Java, and there is none on JAVA_HOME="):
        check_java()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    with pytest.raises(InvalidConfig, match=r"Spark needs Java 17, .*java is Java 11: install"):
        check_java()


class Py4JError(Exception):
    """As py4j's own, which needs a gateway."""

    __module__ = "py4j.protocol"


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (
            Py4JError("[X] Failed to find the data source: kafka. Make sure\nthe provider"),
            InvalidConfig,
            "add its connector with --packages org.apache.spark:spark-sql-kafka-0-10_2.13:",
        ),
        (Py4JError("the reason\n  at org.apache"), PipelineFailed, "Spark refused: the reason"),
        (Py4JError("[JAVA_GATEWAY_EXITED] Java"), PipelineFailed, "Spark did not start"),
        (PipelineFailed("operator 'a' stopped"), PipelineFailed, "operator 'a' stopped"),
    ],
)
def test_what_spark_raises_becomes_a_sentence(
    error: Exception, kind: type[ForetideError], says: str, tmp_path: Path
) -> None:
    with pytest.raises(kind) as caught, sentences(tmp_path):
        raise error
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mistake_of_ours_keeps_its_traceback(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), sentences(tmp_path):
        _ = 1 / 0


def test_what_threads_raise_goes_to_the_log(tmp_path: Path, capsys: Any) -> None:
    def fail() -> None:
        raise ValueError("in a thread")

    with sentences(tmp_path):
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        logging.getLogger("py4j").error("an exception while sending a command")
    assert capsys.readouterr().err == ""
    log = (tmp_path / "driver.log").read_text()
    assert "ValueError: in a thread" in log
    assert "while sending a command" in log
