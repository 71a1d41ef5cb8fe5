"""A real standalone cluster on loopback: executors come with replicas and go with them; the stream
never stops.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from standalone import SCRIPT, standalone

pytestmark = pytest.mark.spark


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    with standalone(tmp_path) as url:
        yield url


def printed(phase: str, master: str, folder: Path) -> list[dict[str, object]]:
    """The records that the script prints when it has run on the cluster."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), phase, master, str(folder)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_executors_come_and_go_with_replicas(master: str, tmp_path: Path) -> None:
    lines = printed("phases", master, tmp_path / "run")
    assert lines == [{"two": 1, "six": 3, "two again": 1}, {"exactly_once": True}]


@pytest.mark.long
def test_a_pool_has_its_executors_before_its_replicas_work(master: str, tmp_path: Path) -> None:
    lines = printed("pool", master, tmp_path / "run")
    pool = {
        "replicas before": {"a": 1, "b": 1},
        "replicas of the next batch": 3,
        "same executors": True,
    }
    assert lines == [pool, {"exactly_once": True}]
