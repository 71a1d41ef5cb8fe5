"""Attach to an application of two ordinary queries on a cluster of its own, in a process of its
own.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from foretide.errors import InvalidConfig, JournalError
from foretide.journal import read
from foretide.plan.micro_batch import MicroBatch
from foretide.spark.attach import attachment as attaching

APPLICATION = """
import json, os, sys, time
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
import foretide

spark = (SparkSession.builder.master("local-cluster[2,1,768]")
         .config("spark.executor.memory", "512m").config("spark.ui.enabled", "false")
         .config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
         .config("spark.ui.showConsoleProgress", "false").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
out = sys.argv[1]

def lookup(rows):
    for batch in rows:
        time.sleep(0.004 * len(batch) * float(open(out + "/heavy").read()))
        yield batch

open(out + "/heavy", "w").write("0.01")
os.mkdir(out + "/nothing")
nothing = spark.readStream.schema("id long").json(out + "/nothing")
idle = nothing.writeStream.queryName("idle").format("noop").start()

def rate(per_second):
    source = spark.readStream.format("rate").option("rowsPerSecond", per_second)
    return source.option("numPartitions", 2).load()

def started_query(frame, name):
    writer = frame.writeStream.queryName(name).format("noop")
    return writer.trigger(processingTime="1 second").start()

heavy = rate(200)
queries = [
    started_query(rate(5), "light"),
    started_query(heavy.mapInPandas(lookup, heavy.schema), "heavy"),
]
runs = [str(q.runId) for q in queries]
# an application that is already at work
while any(not (q.lastProgress and q.lastProgress.numInputRows) for q in queries):
    time.sleep(0.2)
attached = foretide.attach(
    spark, target_latency_s=8.0, max_executors=2, mode="act", window_s=3.0, run_dir=out + "/run"
)
advised = attached.advised.wait(120)

def wait_for(count, seconds=100):
    end = time.time() + seconds
    while time.time() < end:
        if len(attached.executors.names()) == count:
            return True
        time.sleep(0.5)
    return False

gone = wait_for(1)
open(out + "/heavy", "w").write("2.2")
came = wait_for(2)
attached.stop()
print(json.dumps({
    "advised": advised, "gone": gone, "came": came,
    "advice": attached.advice,
    "active": [q.isActive for q in queries], "same_runs": [str(q.runId) for q in queries] == runs,
}), flush=True)
for q in [*queries, idle]:
    q.stop()
spark.stop()
"""


@pytest.mark.spark
def test_two_ordinary_queries_get_advice_and_an_executor_goes_and_comes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", APPLICATION, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-3000:]
    outcome = json.loads(lines[-1])
    assert outcome["advised"]
    assert outcome["gone"], "an idle executor was given back"
    assert outcome["came"], "and one came when the load rose"
    assert outcome["active"] == [True, True]
    assert outcome["same_runs"], "no query was restarted"
    run, decisions = read(tmp_path / "run" / "journal.jsonl")
    assert set(run.topology.names) == {"light", "heavy"}, (
        "nobody waits for a query to which nothing comes"
    )
    first = next(i for i, d in enumerate(decisions) if d.plan is not None)
    measured = [d.snapshot.samples for d in decisions[:first] if d.snapshot is not None]
    worked = [s for s in measured if s["light"].processed and s["heavy"].processed]
    assert len(worked) <= 3, "advice comes soon after both queries were seen at work"
    plans = [d.plan for d in decisions if d.plan is not None]
    assert {p.executors for p in plans} == {1, 2}
    assert all(p.reasons["heavy"] and p.reasons[""] for p in plans)


def test_attaching_with_a_wrong_mode_or_folder_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anything but "advise" would act."""
    spark: Any = None
    wrong: Any = "advice"
    with pytest.raises(InvalidConfig, match="'advice' is not a mode: advise, act or guide"):
        attaching.attach(spark, mode=wrong)
    (tmp_path / "file").touch()
    monkeypatch.setattr(attaching, "ExecutorPool", lambda spark, lead_times: None)
    with pytest.raises(JournalError, match="choose a folder you can write to"):
        attaching.attach(spark, run_dir=tmp_path / "file" / "run")


def test_spark_connect_is_refused_with_a_sentence() -> None:
    class Session:
        pass

    Session.__module__ = "pyspark.sql.connect.session"
    session: Any = Session()
    with pytest.raises(InvalidConfig, match=r"Spark Connect session: .*classic mode"):
        attaching.attach(session)


def test_learned_state_that_cannot_be_read_is_moved_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "learned-micro-batch.json"
    path.write_text('{"models": {"q": {"torn"')
    assert attaching.readable(path, MicroBatch()) == path
    assert not path.exists()
    assert (tmp_path / "learned-micro-batch.unreadable").exists()
    assert "attach learns anew" in caplog.text
    assert attaching.readable(path, MicroBatch()) == path, "no file is no error"


def test_attach_imports_nothing_that_only_a_new_spark_has() -> None:
    """Pipelines need Spark 4.2; attach must import beside 3.5."""
    code = (
        "import sys, foretide.spark.attach.attachment, foretide.spark.attach.submit; "
        "print([m for m in sys.modules if m.startswith(('foretide.spark.run', "
        "'foretide.spark.declare', 'foretide.spark.edge', 'pyspark.sql.datasource'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
