"""``foretide run`` on real Spark when something outside goes wrong: one sentence, a clean end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

MINE = """
import threading
from pathlib import Path

from foretide.load import load
from foretide.spark import Pipeline

pipeline = Pipeline("mine", trigger_s=1.0)
pipeline.source("numbers", load("stable:mean=5,days=1"))


@pipeline.operator(inputs="numbers", schema="id long")
def same(event):
    return {"id": event["id"]}


stuck = Pipeline("stuck", trigger_s=1.0)
stuck.source("numbers", load("stable:mean=5,days=1"))


@stuck.operator(inputs="numbers", schema="id long")
def wait(event):
    Path("at-work").touch()
    threading.Event().wait()


kafka = Pipeline("kafka")
kafka.source("topic", lambda spark: spark.readStream.format("kafka").load())
kafka.operator(inputs="topic", schema="value binary")(same)
"""

pytestmark = pytest.mark.spark


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "mine.py").write_text(MINE)
    command = ["run", *arguments, "--window", "1", "--folder", str(folder / "run")]
    with open(folder / "out", "w") as out, open(folder / "errors", "w") as errors:
        return subprocess.Popen(
            [sys.executable, "-c", f"from foretide.cli import app; app({command})"],
            stdout=out,
            stderr=errors,
            text=True,
            cwd=folder,
            start_new_session=True,
        )


def ended(process: subprocess.Popen[str], folder: Path) -> tuple[str, str]:
    """What a run printed. It goes to files: Python workers outlive a killed JVM by a moment and
    would keep pipes open.
    """
    process.wait(timeout=200)
    return (folder / "out").read_text(), (folder / "errors").read_text()


def children(pid: int) -> dict[int, str]:
    """Processes below one, by id, with their command lines."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [(int(p), int(parent), args) for p, parent, args in map(split, listed.splitlines())]
    below = {pid}
    while more := {p for p, parent, _ in rows if parent in below} - below:
        below |= more
    return {p: args for p, _, args in rows if p in below and p != pid}


def split(line: str) -> tuple[str, str, str]:
    pid, parent, args = line.split(None, 2)
    return pid, parent, args


def kill_java(process: subprocess.Popen[str]) -> None:
    for pid, args in children(process.pid).items():
        if "org.apache.spark.deploy.SparkSubmit" in args:
            os.kill(pid, signal.SIGKILL)


def signal_the_group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGTERM)


def interrupt(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("attack", "code", "out", "sentence"),
    [
        (kill_java, 2, "mine runs under", "Spark's Java process ended (killed, crashed"),
        (signal_the_group, 0, "replica-seconds used", ""),
        (interrupt, 0, "stopping: batches under way end first", ""),
    ],
)
def test_one_sentence_and_a_clean_end(
    attack: Callable[[subprocess.Popen[str]], None],
    code: int,
    out: str,
    sentence: str,
    tmp_path: Path,
) -> None:
    process = start(tmp_path, "mine.py:pipeline")
    journal, until = tmp_path / "run" / "journal.jsonl", time.monotonic() + 200
    while process.poll() is None and time.monotonic() < until:
        if journal.exists() and journal.read_bytes().count(b"\n") > 12:
            break
        time.sleep(0.1)
    attack(process)
    printed, errors = ended(process, tmp_path)
    assert process.returncode == code, printed + errors
    assert out in printed
    assert errors.count("\n") == (1 if sentence else 0), errors
    assert sentence in errors


def test_killed_python_workers_are_one_sentence(tmp_path: Path) -> None:
    process = start(tmp_path, "mine.py:stuck")
    until = time.monotonic() + 200
    while not (tmp_path / "at-work").exists():
        assert process.poll() is None, ended(process, tmp_path)
        assert time.monotonic() < until
        time.sleep(0.1)
    for pid, args in children(process.pid).items():
        if "-m foretide.spark.worker.daemon" in args:  # not the JVM that starts them
            os.kill(pid, signal.SIGKILL)
    printed, errors = ended(process, tmp_path)
    assert process.returncode == 2, printed + errors
    (line,) = errors.splitlines()
    assert "operator 'wait': one of Spark's Python processes ended" in line
    assert "start again" in line


def test_kafka_without_its_connector_is_one_sentence(tmp_path: Path) -> None:
    process = start(tmp_path, "mine.py:kafka", "--windows", "3")
    printed, errors = ended(process, tmp_path)
    assert process.returncode == 2, printed + errors
    note, line = errors.splitlines()
    assert note.startswith("note: source 'topic' has no stamp")
    assert "Spark has no data source 'kafka'" in line
    assert "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:" in line
