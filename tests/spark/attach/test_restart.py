"""A driver that is killed and starts anew: attach goes on with what it had learned, in a run folder
of its own.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

APPLICATION = """
import json, os, sys, time
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
import foretide

spark = (SparkSession.builder.master("local[2]").appName("restarted")
    .config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.showConsoleProgress", "false").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
rate = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
query = (rate.writeStream.queryName("work").format("noop")
    .option("checkpointLocation", "checkpoint").trigger(processingTime="1 second").start())
watcher = foretide.attach(spark, max_executors=4, window_s=2.0)
watcher.advised.wait(200)
if "--stay" in sys.argv:
    query.awaitTermination()
plan = watcher.last.plan
print("SEEN " + json.dumps({"error": plan and plan.model_error}), flush=True)
watcher.stop()
query.stop()
spark.stop()
"""


def batches_learned(folder: Path) -> int:
    """Batches in the newest file of what was learned; 0 when there is none."""
    files = sorted(folder.glob("runs/attach-*/learned-micro-batch.json"))
    return int(json.loads(files[-1].read_text())["models"]["work"]["seen"]) if files else 0


@pytest.mark.spark
@pytest.mark.long
def test_a_killed_driver_goes_on_with_what_attach_had_learned(tmp_path: Path) -> None:
    first = subprocess.Popen(
        [sys.executable, "-c", APPLICATION, "--stay"],
        cwd=tmp_path,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 240
        while batches_learned(tmp_path) < 5 and first.poll() is None and time.monotonic() < end:
            time.sleep(0.3)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    learned = batches_learned(tmp_path)
    assert learned >= 5
    done = subprocess.run(
        [sys.executable, "-c", APPLICATION],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert lines, done.stderr[-3000:]
    assert json.loads(lines[-1].removeprefix("SEEN "))["error"] is not None, (
        "the error of predictions made before the restart is known at the first advice"
    )
    assert len(list(tmp_path.glob("runs/attach-*"))) == 2
    assert batches_learned(tmp_path) > learned
