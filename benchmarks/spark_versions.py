"""Attach beside every Spark since 3.5: a fresh environment per version, one application each.

Makes a virtual environment for each version (pyspark of that version, Foretide from this tree),
runs an application with two queries on a cluster of 1-core executors, attached in act mode, and
prints what ran: advice, arrivals, the batch model, an executor given back, the query's trigger, and
the sentence for Spark Connect where the version has it.

    python benchmarks/spark_versions.py [VERSION ...] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
APPLICATION = """
import json, os, sys, time
os.environ["PYSPARK_PYTHON"] = sys.executable
import pyspark
from pyspark.sql import SparkSession
import foretide

spark = (SparkSession.builder.master("local-cluster[2,1,768]")
    .config("spark.executor.memory", "512m").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
    .config("spark.decommission.enabled", "true")
    .config("spark.ui.showConsoleProgress", "false").getOrCreate())
spark.sparkContext.setLogLevel("OFF")

def start(name, rate):
    frame = spark.readStream.format("rate").option("rowsPerSecond", rate).load()
    return (frame.groupBy("value").count().writeStream.outputMode("update").queryName(name)
        .format("noop").trigger(processingTime="2 seconds").start())

queries = [start("a", 10), start("b", 20)]
watcher = foretide.attach(spark, target_latency_s=30, max_executors=2, mode="act", window_s=3.0,
    run_dir=sys.argv[1])
watcher.advised.wait(120)
end = time.time() + 120
while time.time() < end and len(watcher.executors.names()) != 1:
    time.sleep(0.5)
last = watcher.last
samples = last.snapshot.samples if last and last.snapshot else {}
seen = {
    "spark": pyspark.__version__,
    "advice": watcher.advised.is_set(),
    "given_back": len(watcher.executors.names()) == 1,
    "rate_b": round(samples["b"].arrived / last.snapshot.window_s, 1) if samples else None,
    "stages": max((len(r.stages) for r in samples["b"].batch_runs), default=0) if samples else 0,
    "trigger_s": samples["b"].trigger_s if samples else None,
    "lead_s": round(last.snapshot.lead_s or 0, 1) if samples else None,
    "error": last.error if last else None,
}
watcher.stop()
seen["running"] = all(q.isActive for q in queries)
for q in queries:
    q.stop()
spark.stop()
print("SEEN " + json.dumps(seen), flush=True)
"""


def environment(version: str, folder: Path) -> Path:
    """The interpreter of a fresh environment with this Spark and Foretide."""
    place = folder / f"spark-{version}"
    python = place / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    install = [*uv, "pip", "install", "-q", "--python", str(python)]
    if not python.exists():
        subprocess.run([*uv, "venv", "-q", str(place)], check=True)
    # in a folder kept from an earlier run, Foretide may be older than this tree
    wanted = ["--reinstall-package", "foretide", f"{ROOT}[attach]", f"pyspark=={version}"]
    subprocess.run([*install, *wanted], check=True)
    return python


def tried(version: str, folder: Path) -> dict[str, object]:
    """What ran beside one version."""
    try:
        python = environment(version, folder)
    except subprocess.CalledProcessError as error:
        return {"spark": version, "error": f"could not be installed: {error}"}
    with tempfile.TemporaryDirectory() as run:
        done = subprocess.run(
            [str(python), "-c", APPLICATION, run],
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
            cwd=run,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    if not lines:
        return {"spark": version, "error": done.stderr.strip()[-400:]}
    seen: dict[str, object] = json.loads(lines[-1].removeprefix("SEEN "))
    return seen


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("versions", nargs="*", default=VERSIONS)
    options.add_argument("--keep", type=Path, help="where the environments stay for another run")
    args = options.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        for version in args.versions:
            seen = tried(version, args.keep or Path(scratch))
            print(json.dumps(seen), flush=True)
            good &= bool(seen.get("advice") and seen.get("given_back") and seen.get("running"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
