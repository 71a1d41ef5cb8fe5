"""A standalone cluster whose machines share no folder: the driver's is in a mount namespace of its
own, edges are Kafka topics. Executors and a worker are killed; every event comes out once.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from standalone import standalone

from foretide.demo.broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.long]
ALONE = ["unshare", "--mount"]


def test_nothing_is_lost_or_doubled_without_a_shared_folder(
    own_broker: Broker, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    mount = f"mount -t tmpfs none {run}"
    tried = [*ALONE, "sh", "-c", mount]
    if not shutil.which("unshare") or subprocess.run(tried, check=False).returncode:
        pytest.skip("mount namespaces are not permitted here: run it as root")
    script = Path(__file__).with_name("on_kafka_cluster.py")
    with standalone(tmp_path) as master:
        drive = [sys.executable, str(script), master, str(run), own_broker.servers]
        done = subprocess.run(
            [*ALONE, "sh", "-c", f'{mount} && exec "$@"', "-", *drive, str(tmp_path / "worker-0")],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert seen["exactly_once"], seen
    assert seen["executors killed"] == seen["workers killed"] == 1, seen
    assert {"edges", "checkpoints", "kafka.json"} <= set(seen["folder"])
    assert list(run.iterdir()) == [], "the driver's folder was seen from outside"
