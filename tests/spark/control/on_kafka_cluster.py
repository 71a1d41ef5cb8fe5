"""A pipeline with Kafka edges on a standalone cluster, as a process of its own: replicas and
executors scale out, an executor and a worker with all it runs are killed. Prints what it saw.

The pipeline's folder may be one that no other process can see: only the driver uses it.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from foretide.load import Load
from foretide.model import Plan
from foretide.spark import Generator, Pipeline, Running, kafka, session
from foretide.spark.control.actuator import PipelineActuator
from foretide.spark.control.executors import ExecutorPool

LIMIT_S = 200.0


def until(running: Running, test: Callable[[], bool], what: str) -> None:
    end, pause = time.monotonic() + LIMIT_S, 0.2
    while not test():
        running.check()
        if time.monotonic() > end:
            raise SystemExit(f"not in time: {what}")
        time.sleep(pause)


def processes(*words: str) -> list[int]:
    """Processes whose command lines hold all these words."""
    matching = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{entry}/cmdline").read_text()
        except OSError:
            continue
        if int(entry) != os.getpid() and all(word in command for word in words):
            matching.append(int(entry))
    return matching


def kill(pids: list[int]) -> int:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return len(pids)


def declared(servers: str) -> Pipeline:
    p = Pipeline("on_kafka", trigger_s=1.0, edges=kafka(servers))
    p.source("events", Generator(Load("endless", np.full(1200, 20.0)), keys=5))
    p.operator(inputs="events", name="a", max_replicas=4, schema="id long, key long")(
        lambda e: {"id": e["id"], "key": e["key"]}
    )
    p.operator(inputs="a", name="b", key="key", max_replicas=4)(lambda e: e)
    p.sink("out", inputs="b")
    return p


def main(master: str, path: Path, servers: str, work_dir: str) -> None:
    settings = {
        "spark.executor.cores": "2",
        "spark.executor.memory": "640m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    spark = session("on-kafka", master=master, short_run=True, settings=settings)
    app, seen = spark.sparkContext.applicationId, dict[str, object]()
    with Running(declared(servers), spark, path) as running:
        executors = ExecutorPool(spark)
        actuator = PipelineActuator(running, executors)

        def go_on(what: str) -> None:
            start = running.accounts.latest("b").batch
            until(running, lambda: running.accounts.latest("b").batch >= start + 3, what)
            print(what, executors.names(), file=sys.stderr, flush=True)

        def scale(replicas: int, wanted: int) -> None:
            actuator.apply(Plan({"a": replicas, "b": replicas}))
            until(running, lambda: len(executors.names()) == wanted, f"{wanted} executors")
            go_on(f"batches on {wanted} executors")

        scale(1, 1)
        scale(3, 3)
        before = set(executors.names())
        backend = ("CoarseGrainedExecutorBackend", app)
        seen["executors killed"] = kill(processes(*backend)[:1])
        until(running, lambda: set(executors.names()) != before, "the loss of an executor")
        go_on("batches after an executor was killed")
        worker = processes("deploy.worker.Worker", work_dir)
        on_it = [pid for pid in processes(*backend) if cwd(pid).startswith(work_dir)]
        seen["workers killed"] = kill(worker)
        seen["executors on it"] = kill(on_it)
        go_on("batches after a worker was killed")
        scale(1, 1)
        with running.accounts.changed:
            count = running.accounts.consumed("b")
        ids = sorted(r["id"] for r in running.read("out").select("id").collect())
        seen["exactly_once"] = ids == list(range(len(ids))) and len(ids) >= count > 0
        seen["events"] = len(ids)
        seen["folder"] = sorted(os.listdir(path))
    spark.stop()
    print(json.dumps(seen))


def cwd(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4])
