"""``foretide submit``: spark-submit's options, the application's arguments and exit code."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from foretide.cli import app
from foretide.errors import InvalidConfig
from foretide.journal import read
from foretide.spark.attach.settings import settings_of
from foretide.spark.attach.submit import split_arguments, submission

APPLICATION = """
import sys, time
import beside
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
rate = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
query = rate.writeStream.queryName("rate").format("noop").trigger(processingTime="1 second").start()
journal = sys.argv[1]
end = time.time() + 120
while time.time() < end:
    try:
        if '"advised"' in open(journal).read() or '"unchanged"' in open(journal).read():
            break
    except OSError:
        pass
    time.sleep(0.3)
query.stop()
print(beside.NAME, sys.argv[2:], flush=True)
sys.exit(7)
"""


@pytest.mark.spark
def test_an_application_is_attached_to_without_a_line_of_code(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APPLICATION)
    (tmp_path / "beside.py").write_text("NAME = 'a module beside the application'")
    run = tmp_path / "run"
    options = {
        "spark.foretide.target": "5",
        "spark.foretide.window": "2",
        "spark.foretide.runDir": str(run),
        "spark.ui.enabled": "false",
    }
    command = [sys.executable, "-c", "from foretide.cli import app; app()", "submit"]
    command += ["--master", "local[2]"]
    command += [part for k, v in options.items() for part in ("--conf", f"{k}={v}")]
    command += [str(tmp_path / "app.py"), str(run / "journal.jsonl"), "--conf", "of its own"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 7, done.stderr[-2000:]
    assert "a module beside the application ['--conf', 'of its own']" in done.stdout
    header, decisions = read(run / "journal.jsonl")
    assert (header.target_latency_s, header.topology.names) == (5.0, ("rate",))
    assert any(d.plan for d in decisions)


def test_options_that_spark_submit_knows_as_switches_take_no_value() -> None:
    options, application, own = split_arguments(
        ["--verbose", "--supervise", "--jars", "a.jar", "-v", "app.py", "in", "-v"]
    )
    assert options == ["--verbose", "--supervise", "--jars", "a.jar", "-v"]
    assert (application, own) == ("app.py", ["in", "-v"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--master", "yarn"], "no application: foretide submit"),
        (["app.jar"], "app.jar is no Python file"),
        (["nowhere.py"], "there is no file nowhere.py"),
        (["--deploy-mode", "cluster", "app.py"], "in cluster mode, write foretide.attach"),
    ],
)
def test_what_cannot_be_submitted_is_a_sentence(arguments: list[str], sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        submission(arguments, {})


def test_the_driver_runs_in_this_environment_unless_another_one_is_set(tmp_path: Path) -> None:
    application = tmp_path / "app.py"
    application.touch()
    command, environment = submission([str(application), "x"], {"SPARK_HOME": "/opt/spark"})
    assert command[0] == "/opt/spark/bin/spark-submit"
    assert command[-2:] == [str(application), "x"]
    assert environment["PYSPARK_DRIVER_PYTHON"] == sys.executable
    other = {"SPARK_HOME": "/opt/spark", "PYSPARK_DRIVER_PYTHON": "/usr/bin/python3"}
    assert submission([str(application)], other)[1] == other


def test_settings_come_from_the_spark_configuration() -> None:
    conf = {
        "spark.app.name": "x",
        "spark.foretide.mode": "act",
        "spark.foretide.maxExecutors": "8",
        "spark.foretide.priorities": "clean:1, report:0",
    }
    settings = settings_of(conf)
    assert (settings.mode, settings.max_executors) == ("act", 8)
    assert settings.priorities == {"clean": 1.0, "report": 0.0}
    with pytest.raises(InvalidConfig, match=r"did you mean 'spark\.foretide\.target'"):
        settings_of({"spark.foretide.taget": "5"})
    with pytest.raises(InvalidConfig, match=r"spark\.foretide\.target is 'soon'"):
        settings_of({"spark.foretide.target": "soon"})
    with pytest.raises(InvalidConfig, match="give a share between 0 and 1"):
        settings_of({"spark.foretide.share": "99"})


def test_help_is_foretides_own() -> None:
    shown = CliRunner().invoke(app, ["submit", "--help"])
    assert shown.exit_code == 0
    assert "spark.foretide.target=10" in shown.output
