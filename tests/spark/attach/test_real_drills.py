"""Failure drills of attach on real Spark: an executor is killed, a query restarts under a new run
id, the loop starts anew. Executors are never fewer because of it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from foretide.journal import read

APPLICATION = """
import json, os, signal, sys, time
os.environ["PYSPARK_PYTHON"] = sys.executable
from pathlib import Path
from pyspark.sql import SparkSession
import foretide

spark = (SparkSession.builder.master("local-cluster[2,1,768]")
    .config("spark.executor.memory", "512m").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.decommission.enabled", "true")
    .config("spark.ui.showConsoleProgress", "false").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
out = sys.argv[1]

def slow(batches):
    for batch in batches:
        time.sleep(0.012 * len(batch))
        yield batch

def start():
    rate = spark.readStream.format("rate").option("rowsPerSecond", 100)
    rate = rate.option("numPartitions", 2).load()
    return (rate.mapInPandas(slow, rate.schema).writeStream.queryName("work").format("noop")
        .option("checkpointLocation", out + "/checkpoint")
        .trigger(processingTime="1 second").start())

def attach():
    return foretide.attach(spark, target_latency_s=8.0, max_executors=2, mode="act",
        window_s=3.0, run_dir=out + "/run")

def until(condition, seconds=120):
    end = time.time() + seconds
    while time.time() < end and not condition():
        time.sleep(0.3)
    return bool(condition())

def executor_processes():
    application = spark.sparkContext.applicationId.encode()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = place.read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command and application in command:
            yield int(place.parent.name)

seen = {}
query = start()
watcher = attach()
seen["advised"] = watcher.advised.wait(120)
seen["before"] = len(watcher.executors.names())
names = set(watcher.executors.names())
os.kill(next(iter(executor_processes())), signal.SIGKILL)
seen["noticed"] = until(lambda: set(watcher.executors.names()) != names)
seen["replaced"] = until(lambda: len(watcher.executors.names()) >= seen["before"])
first_run = str(query.runId)
query.stop()
query = start()
seen["new_run"] = str(query.runId) != first_run
watcher.advised.clear()
seen["advised_again"] = watcher.advised.wait(120)
seen["after"] = len(watcher.executors.names())
watcher.stop()
again = attach()
seen["attached_anew"] = again.advised.wait(120)
seen["error_known"] = again.last.plan is not None and again.last.plan.model_error is not None
again.stop()
seen["active"] = query.isActive
print("SEEN " + json.dumps(seen), flush=True)
query.stop()
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.long
def test_an_executor_dies_a_query_restarts_and_attach_starts_anew(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", APPLICATION, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert lines, done.stderr[-3000:]
    seen = json.loads(lines[-1].removeprefix("SEEN "))
    assert seen["before"] == seen["after"] == 2, "100 events/s of 12 ms keep 1.2 slots busy"
    assert seen["noticed"]
    assert seen["replaced"]
    assert seen["new_run"]
    assert seen["advised_again"]
    assert seen["attached_anew"]
    assert seen["error_known"], "the batch model goes on with what it had learned"
    assert seen["active"]
    _, decisions = read(tmp_path / "run" / "journal.jsonl")
    assert {d.plan.executors for d in decisions if d.plan} == {2}
    assert (tmp_path / "run" / "learned-micro-batch.json").exists()
