"""A real standalone cluster of Spark on loopback: a master and two workers as processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
SCRIPT = Path(__file__).with_name("on_cluster.py")


def address(log: Path, master: subprocess.Popen[bytes], limit_s: float = 120.0) -> str:
    """Where the master listens: it takes a port that is free and writes it to its log."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until and master.poll() is None:
        if found := re.search(r"Starting Spark master at (spark://[\w.:]+)", log.read_text()):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"no master came up: {log.read_text()[-2000:]}")


@contextmanager
def standalone(tmp_path: Path, cores: int = 4) -> Iterator[str]:
    """The master's address; its processes are stopped by their own ids. Each of two workers offers
    ``cores`` slots, whatever the machine has.
    """
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    spark_class = str(HOME / "bin" / "spark-class")
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    started: list[subprocess.Popen[bytes]] = []
    with open(tmp_path / "cluster.log", "ab") as log:

        def start(name: str, *more: str) -> None:
            command = [spark_class, f"org.apache.spark.deploy.{name}", *place, *more]
            started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

        try:
            start("master.Master", "--port", "0")
            url = address(tmp_path / "cluster.log", started[0])
            for i in range(2):
                start(
                    "worker.Worker",
                    "--work-dir",
                    str(tmp_path / f"worker-{i}"),
                    "--cores",
                    str(cores),
                    "--memory",
                    "3g",
                    url,
                )
            yield url
        finally:
            for process in reversed(started):
                process.terminate()
            for process in started:
                process.wait(timeout=60)
