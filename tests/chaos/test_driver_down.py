"""The driver dies on a real cluster: its executors go, and come back with it; replicas too."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from standalone import standalone

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCRIPT = Path(__file__).with_name("driver_down.py")


def executors(folder: Path) -> int:
    """Executor processes that a cluster's workers run: each knows its worker's folder."""
    found = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_text()
                place = os.readlink(entry / "cwd")
            except OSError:
                continue
            found += "CoarseGrainedExecutorBackend" in command and place.startswith(str(folder))
    return found


def start(master: str, run: Path, log: Path) -> subprocess.Popen[str]:
    with log.open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), master, str(run)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )


def test_executors_go_with_a_killed_driver_and_come_back_with_it(tmp_path: Path) -> None:
    with standalone(tmp_path) as master:
        first = start(master, tmp_path / "run", tmp_path / "log")
        assert first.stdout is not None
        seen = json.loads(first.stdout.readline() or "{}")
        log = (tmp_path / "log").read_text()[-2000:]
        assert seen == {"replicas": {"a": 1, "b": 1}, "executors": 3}, log
        assert executors(tmp_path) == 3
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        first.stdout.close()
        until = time.monotonic() + 120
        while executors(tmp_path) and time.monotonic() < until:
            time.sleep(0.1)
        assert executors(tmp_path) == 0, "nothing goes on computing for a driver that is gone"
        again = start(master, tmp_path / "run", tmp_path / "log")
        out, _ = again.communicate(timeout=400)
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        assert again.returncode == 0, (tmp_path / "log").read_text()[-2000:]
        assert lines == [
            {"replicas": {"a": 3, "b": 3}, "executors": 3},
            {"exactly_once": True, "all": True},
        ]
