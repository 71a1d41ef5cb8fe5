"""The driver dies on a real cluster: its executors go, and come back with it; replicas too."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from standalone import SCRIPT, standalone

pytestmark = [pytest.mark.spark, pytest.mark.long]
LIMIT_S = 120.0


def executors(folder: Path) -> int:
    """Executor processes that a cluster's workers run, by the worker's folder in which they are."""
    running = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_text()
                place = os.readlink(entry / "cwd")
            except OSError:
                continue
            running += "CoarseGrainedExecutorBackend" in command and place.startswith(str(folder))
    return running


def executors_left(folder: Path, wanted: int) -> int:
    """Executor processes, once they are as many as wanted or the time is over: one that was given
    back takes a moment to end.
    """
    until = time.monotonic() + LIMIT_S
    while executors(folder) != wanted and time.monotonic() < until:
        time.sleep(0.1)
    return executors(folder)


def start(role: str, master: str, run: Path, log: Path) -> subprocess.Popen[str]:
    with log.open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), role, master, str(run)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )


def test_executors_go_with_a_killed_driver_and_come_back_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with standalone(tmp_path) as master:
        first = start("first", master, tmp_path / "run", log)
        assert first.stdout is not None
        seen = json.loads(first.stdout.readline() or "{}")
        assert seen == {"replicas": {"a": 1, "b": 1}, "executors": 3}, log.read_text()[-2000:]
        assert executors_left(tmp_path, 3) == 3
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        first.stdout.close()
        assert executors_left(tmp_path, 0) == 0, "nothing goes on computing for a driver gone"
        again = start("again", master, tmp_path / "run", log)
        out, _ = again.communicate(timeout=400)
        assert again.returncode == 0, log.read_text()[-2000:]
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        assert lines == [{"replicas": {"a": 3, "b": 3}, "executors": 3}, {"exactly_once": True}]
