"""A real standalone cluster on loopback: executors come with replicas and go with them; the stream never stops."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

pytestmark = pytest.mark.spark

HOME = Path(pyspark.__file__).parent


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Master and two workers as processes; stopped by their own ids."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = {**os.environ, "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_MEMORY": "256m"}
    spark_class = str(HOME / "bin" / "spark-class")
    commands = [["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    for i in range(2):
        place = ["--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(tmp_path / f"worker-{i}")]
        commands.append(["org.apache.spark.deploy.worker.Worker", *place, "--cores", "4", "--memory", "3g", url])
    started = []
    with open(tmp_path / "cluster.log", "ab") as log:
        for command in commands:
            started.append(subprocess.Popen([spark_class, *command], env=environment, stdout=log, stderr=log))
        yield url
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=30)


def test_executors_come_and_go_with_replicas(master: str, tmp_path: Path) -> None:
    script = str(Path(__file__).with_name("on_cluster.py"))
    done = subprocess.run(
        [sys.executable, script, master, str(tmp_path / "run")], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert (seen["two"], seen["six"], seen["two again"]) == (1, 3, 1)
    assert seen["exactly_once"]
