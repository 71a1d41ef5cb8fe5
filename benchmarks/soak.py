"""Does anything grow? A week of simulated time with the journal on, a week of batches on one edge,
and some minutes of real Spark with a change every 10 s.

Prints memory, files, threads, file descriptors and the time of a step at five moments, and their
slope over the second half (least squares), when everything is loaded. They should be flat: the last
figures at most 1.2 times those of the first fifth, except for the journal, which grows by one line
per window. Usage: python benchmarks/soak.py
[--days D] [--batches N] [--minutes M]      (0 leaves a part out)
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretide.journal import Journal, Run
from foretide.spark.edge.inbox import Inbox
from foretide.spark.edge.outbox import Outbox
from foretide.spark.edge.protocol import Manifest
from foretide.systems import system
from foretide.testing import ScriptedEnvironment
from foretide.topology import Operator, Topology

WINDOW_S = 10.0
FLAT = 1.2


def resident_mb(pid: int | str = "self") -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@dataclass(frozen=True)
class Span:
    """How long a series took, e.g. 7 days."""

    length: float
    unit: str

    def slope(self, series: list[float]) -> float:
        """Growth per unit over the second half, by least squares."""
        half = series[len(series) // 2 :]
        if len(half) < 3:
            return math.nan
        at = np.arange(len(half)) * self.length / len(series)
        return float(np.polyfit(at, half, 1)[0])


def verdict(
    name: str, series: list[float], unit: str, span: Span | None = None, slack: float = 0.0
) -> bool:
    """Print a series at five moments; whether its end is flat against its first fifth."""
    fifth = max(1, len(series) // 5)
    first, last = max(series[:fifth]), statistics.median(series[-fifth:])
    flat = last <= FLAT * first + slack
    moments = [series[min(len(series) - 1, i * len(series) // 4)] for i in range(5)]
    figures = ", ".join(f"{v:,.4g}" for v in moments)
    slope = "" if span is None else f", {span.slope(series):+.2g} {unit} per {span.unit}"
    print(f"  {name}: {figures} {unit}{slope}: {'flat' if flat else 'GROWS'}", flush=True)
    return flat


def simulated_week(days: float) -> bool:
    """A loop of four operators with a journal, as fast as it goes."""
    names = ("source", "parse", "score", "store")
    topology = Topology(
        tuple(Operator(n, names[i - 1 : i] if i else ()) for i, n in enumerate(names))
    )

    def load(at: float) -> float:
        return 300 + 200 * math.sin(at / 13_750) + 50 * math.sin(at / 37)

    world = ScriptedEnvironment(topology, dict.fromkeys(names, 0.02), load, WINDOW_S)
    steps = int(days * 86_400 / WINDOW_S)
    folder = Path(tempfile.mkdtemp(prefix="foretide-soak-"))
    memory, opened, threads, step_ms = [], [], [], []
    failed = 0
    with Journal(folder / "journal.jsonl", Run("soak", "srea", topology, WINDOW_S, 0.0)) as journal:
        loop = system("srea").autoscaler(
            topology, world, world, "act", journal.append, effect_check=True
        )
        for chunk in range(50):
            begun = time.perf_counter()
            for i in range(chunk * steps // 50, (chunk + 1) * steps // 50):
                failed += loop.step(WINDOW_S * (i + 1)).outcome == "failed"
            step_ms.append(1e3 * (time.perf_counter() - begun) / (steps / 50))
            memory.append(resident_mb())
            opened.append(float(descriptors()))
            threads.append(float(threading.active_count()))
    size = (folder / "journal.jsonl").stat().st_size
    files = len(os.listdir(folder))
    shutil.rmtree(folder)
    print(
        f"a simulated week: {steps:,} steps, {failed} failed, {files} file of {size / 1e6:.0f} MB"
    )
    span = Span(days, "day")
    flat = [
        verdict("memory", memory, "MB", span),
        verdict("file descriptors", opened, "open", span),
        verdict("threads", threads, "alive", span),
        verdict("step", step_ms, "ms", span),
    ]
    return all(flat) and not failed


def week_of_batches(batches: int) -> bool:
    """An operator with a kept sink delivers once a second for a week: a look, a sweep, a start."""
    root = Path(tempfile.mkdtemp(prefix="foretide-soak-", dir="/dev/shm"))
    outbox, inbox = Outbox(root / "a"), Inbox(root, "c", ["a"])
    outbox.create()
    look_ms, sweep_ms, at = [], [], inbox.start()

    def timed(call: Callable[[], object]) -> float:
        taken = []
        for _ in range(20):
            begun = time.perf_counter()
            call()
            taken.append(1e3 * (time.perf_counter() - begun))
        return statistics.median(taken)

    for i in range(batches):
        staging = outbox.stage(i)
        (staging / "sink.s").mkdir()
        outbox.deliver(staging, Manifest(i, 0.0, 1, {}, {}, {"sink.s": (("x", 1),)}))
        outbox.sweep()
        inbox.advance(at, 100)
        if i % (batches // 50) == 0:
            look_ms.append(timed(lambda: inbox.advance(at, 100)))
            sweep_ms.append(timed(outbox.sweep))
    begun = time.perf_counter()
    Inbox(root, "c", ["a"]).advance({"a": f"{batches - 1}.0"}, 100)
    Outbox(root / "a").sweep()
    restart_s = time.perf_counter() - begun
    print(f"a week of batches: {batches:,} kept; the first look after a restart: {restart_s:.2f} s")
    flat = [
        verdict("look", look_ms, "ms", slack=0.2),
        verdict("sweep", sweep_ms, "ms", slack=0.2),
    ]
    shutil.rmtree(root)
    return all(flat)


def real_minutes(minutes: float) -> bool:
    """A pipeline of two operators on Spark whose replicas change every 10 s."""
    from foretide.load import Load
    from foretide.spark import Generator, Pipeline, Running, session

    pipeline = Pipeline("soak", trigger_s=1.0)
    load = Load("steady", np.full(int(minutes * 60) + 600, 50.0), 1.0)
    pipeline.source("events", Generator(load))
    pipeline.operator(inputs="events", name="first", schema="id long", max_replicas=4)(
        lambda event: {"id": event["id"]}
    )
    pipeline.operator(inputs="first", name="second", max_replicas=4)(lambda event: event)
    pipeline.sink("out", inputs="second", write=lambda frame, batch: None)
    folder = Path(tempfile.mkdtemp(prefix="foretide-soak-"))
    spark = session("soak", master="local[8]")
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    memory, heap, opened, threads, files, batch_s = [], [], [], [], [], []
    with Running(pipeline, spark, folder / "pipeline") as running:
        for i in range(int(minutes * 6)):
            running.set_replicas({"first": 1 + i % 3, "second": 1 + (i + 1) % 3})
            time.sleep(10.0)
            running.check()
            memory.append(resident_mb())
            jvm.System.gc()
            runtime = jvm.java.lang.Runtime.getRuntime()
            heap.append((runtime.totalMemory() - runtime.freeMemory()) / 1e6)
            opened.append(float(descriptors()))
            threads.append(float(threading.active_count()))
            files.append(float(sum(len(names) for _, _, names in os.walk(folder))))
            took = [w.batch_s for w in running.accounts.take().values() if w.batch_s is not None]
            batch_s.append(max(took, default=math.nan))
        batches = running.queries["first"].outbox.newest() + 1
    spark.stop()
    shutil.rmtree(folder)
    batch_s = [s for s in batch_s if not math.isnan(s)]
    print(f"{minutes:g} minutes of Spark, {batches} batches, {len(memory)} changes of replicas")
    span = Span(minutes / 60, "hour")
    flat = [
        verdict("driver's memory", memory, "MB", span),
        verdict("JVM's heap after a collection", heap, "MB", span, 30.0),
        verdict("file descriptors", opened, "open", span, 5),
        verdict("threads", threads, "alive", span, 3),
        verdict("files", files, "on disk", span, 20),
        verdict("slowest batch of 10 s", batch_s, "s", span, 0.5),
    ]
    return all(flat)


def main() -> None:
    parser = argparse.ArgumentParser(description="does anything grow?")
    parser.add_argument("--days", type=float, default=7.0, help="of simulated time")
    parser.add_argument("--batches", type=int, default=604_800, help="on one edge")
    parser.add_argument("--minutes", type=float, default=30.0, help="of real Spark")
    args = parser.parse_args()
    flat = [
        simulated_week(args.days) if args.days else True,
        week_of_batches(args.batches) if args.batches else True,
        real_minutes(args.minutes) if args.minutes else True,
    ]
    sys.exit(0 if all(flat) else 1)


if __name__ == "__main__":
    main()
