"""Attach on real Spark and real Kafka under a load that steps: what it asks for against what is
needed.

A topic of 8 partitions, a cluster of 1-core executors, 10 ms of waiting per event, a batch every
2 s, target 10 s, at most 4 executors. The load goes 60 -> 240 -> 60 events/s. Prints one line per
window and a verdict per step: within 30 s of each change the number asked for must be within one
executor of the need (1, 3, 1), and then stay.

    python benchmarks/attach_steps.py [--mode act|advise] [--seconds 75]

With ``--lag`` the load stays at the first rate, and so many events are sent at once after a minute:
the number asked for must be what works them off within the target, or the reason must name the
limit that forbids it; within two minutes after the lag is gone it must be back at the need.

    python benchmarks/attach_steps.py --lag 100000 --limit 10000 --event-ms 2 --seconds 180

``--cluster standalone`` starts a master and two workers as processes; the default is Spark's
``local-cluster``, whose master and workers live in the driver's JVM.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from standalone import standalone

import foretide
from foretide.demo.broker import Broker, jars
from foretide.journal import read
from foretide.model import Decision
from foretide.spark.attach.attachment import Attachment

TOPIC, PARTITIONS, EVENT_S = "events", 8, 0.01
SETTLE_S = 30.0
QUIET_S = 60.0
"""How long the load is steady before the lag comes."""
RETURN_S = 120.0


class SteadyProducer(threading.Thread):
    """Sends ``rate`` events/s, evenly over partitions, until ``stop`` is set."""

    def __init__(self, servers: str, rate: float) -> None:
        super().__init__(daemon=True)
        self.servers = servers
        self.producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
        self.rate = rate
        self.stop = threading.Event()
        self.sent = 0

    def send(self, count: int) -> None:
        for _ in range(count):
            self.producer.produce(TOPIC, b"x", partition=self.sent % PARTITIONS)
            self.sent += 1
            if self.sent % 1000 == 0:
                self.producer.poll(0)

    def burst(self, count: int) -> None:
        """So many events at once, beside the steady ones."""
        producer = Producer(
            {"bootstrap.servers": self.servers, "queue.buffering.max.messages": 2 * count}
        )
        for number in range(count):
            producer.produce(TOPIC, b"x", partition=number % PARTITIONS)
            if number % 1000 == 0:
                producer.poll(0)
        producer.flush(60)

    def run(self) -> None:
        last, owed = time.monotonic(), 0.0
        while not self.stop.wait(0.05):
            now = time.monotonic()
            owed += (now - last) * self.rate
            last = now
            self.send(int(owed))
            owed -= int(owed)
            self.producer.poll(0)
        self.producer.flush(10)


def waiting_work(event_s: float = EVENT_S):  # type: ignore[no-untyped-def]
    """The work of a task: ``event_s`` seconds of waiting per event."""

    def work(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            time.sleep(event_s * len(batch))
            yield batch

    return work


@contextmanager
def cluster(kind: str, folder: Path, executors: int) -> Iterator[str]:
    """The master's address of a cluster that can hold so many executors of one core."""
    if kind == "local":
        yield f"local-cluster[{executors},1,640]"
        return
    place = folder / "cluster"
    place.mkdir()
    with standalone(place, cores=math.ceil(executors / 2)) as master:
        yield master


def session(master: str, executors: int, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with executors of one core, so many at most."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    fixed = {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": str(executors),
        "spark.jars": ",".join(map(str, jars("spark"))),
        "spark.decommission.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master(master)
    for key, value in {**fixed, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def started_query(spark: SparkSession, servers: str, folder: Path, limit: int, event_s: float):  # type: ignore[no-untyped-def]
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
    )
    if limit:
        reader = reader.option("maxOffsetsPerTrigger", limit)
    events = reader.load().selectExpr("partition", "offset")
    return (
        events.mapInPandas(waiting_work(event_s), events.schema)
        .writeStream.queryName("work")
        .format("noop")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="2 seconds")
        .start()
    )


def parsed_options() -> argparse.Namespace:
    options = argparse.ArgumentParser()
    options.add_argument("--mode", default="act")
    options.add_argument("--cluster", choices=("local", "standalone"), default="local")
    options.add_argument("--seconds", type=float, default=75.0, help="of each rate, or of the lag")
    options.add_argument("--lag", type=int, default=0, help="events sent at once after a minute")
    options.add_argument("--limit", type=int, default=0, help="maxOffsetsPerTrigger; 0: none")
    options.add_argument("--rates", default="60,240,60")
    options.add_argument("--event-ms", type=float, default=1e3 * EVENT_S)
    options.add_argument("--max", type=int, default=4)
    options.add_argument("--keep", type=Path, help="folder in which the run's journal stays")
    return options.parse_args()


def main() -> int:
    args = parsed_options()
    rates = [float(r) for r in args.rates.split(",")]
    event_s = args.event_ms / 1e3
    with (
        tempfile.TemporaryDirectory() as name,
        Broker(Path(name) / "broker") as broker,
        cluster(args.cluster, Path(name), args.max) as master,
    ):
        folder = Path(name)
        run_dir = args.keep or folder / "run"
        admin = AdminClient({"bootstrap.servers": broker.servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        load = SteadyProducer(broker.servers, rates[0])
        spark = session(master, args.max)
        query = started_query(spark, broker.servers, folder, args.limit, event_s)
        load.start()
        while not (query.lastProgress and query.lastProgress["numInputRows"]):
            time.sleep(0.2)
        watcher = foretide.attach(
            spark,
            target_latency_s=10,
            max_executors=args.max,
            mode=args.mode,
            run_dir=run_dir,
        )
        changes: list[tuple[float, float]] = []
        with suppress(KeyboardInterrupt):  # what ran until then is printed
            if args.lag:
                time.sleep(QUIET_S)
                changes.append((time.time(), rates[0]))
                load.burst(args.lag)
                time.sleep(args.seconds)
            else:
                for rate in rates:
                    load.rate = rate
                    changes.append((time.time(), rate))
                    time.sleep(args.seconds)
        watcher.stop()
        others = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
        load.stop.set()
        query.stop()
        spark.stop()
        print_cost(watcher, others)
        _, decisions = read(run_dir / "journal.jsonl")
        print_windows(decisions, changes)
        return (
            lag_verdict(decisions, changes[0], event_s)
            if args.lag
            else verdict(decisions, changes, event_s)
        )


def print_cost(watcher: Attachment, others: int) -> None:
    """What attach itself used, as shares of one core, and jobs that no query started."""
    seconds = watcher.account.seconds
    python, jvm = (watcher.cpu_s or 0.0) / seconds, (watcher.jvm_cpu_s or 0.0) / seconds
    print(
        f"attach used {100 * python:.2f} % of one core in the driver's Python process and "
        f"{100 * jvm:.2f} % in its JVM; {others} jobs outside the queries"
    )


def print_windows(decisions: list[Decision], changes: list[tuple[float, float]]) -> None:
    first = changes[0][0]
    bounds = [*[at for at, _ in changes], float("inf")]
    print("   s  load   read  asked  there  backlog  batch_s  error  lead_s")
    for d in decisions:
        if d.snapshot is None:
            print(f"{d.at - first:4.0f}  {d.error}")
            continue
        load = next(r for (at, r), end in zip(changes, bounds[1:], strict=True) if d.at < end)
        s, plan = d.snapshot.samples["work"], d.plan
        error = plan.model_error if plan else None
        print(
            f"{d.at - first:4.0f} {load:5.0f} {s.arrived / d.snapshot.window_s:6.1f} "
            f"{plan.executors if plan else '-':>5} {len(d.snapshot.hosts or ()):>6} "
            f"{s.backlog:8.0f} "
            f"{s.batch_s or 0:8.2f} {'-' if error is None else f'{100 * error:4.0f} %':>6} "
            f"{d.snapshot.lead_s or 0:6.1f}"
        )
        if d.error:
            print(f"      {d.error}")


def needed(rate: float, event_s: float) -> int:
    """Executors that the events alone keep busy."""
    return max(1, math.ceil(rate * event_s - 1e-9))


def verdict(decisions: list[Decision], changes: list[tuple[float, float]], event_s: float) -> int:
    """Print a verdict per step; 0 when every step was met."""
    bounds = [*[at for at, _ in changes], float("inf")]
    met = True
    for (start, rate), end in zip(changes, bounds[1:], strict=True):
        need = needed(rate, event_s)
        asked = [
            d.plan.executors
            for d in decisions
            if d.plan and d.plan.executors and start + SETTLE_S <= d.at < end
        ]
        good = bool(asked) and all(abs(a - need) <= 1 for a in asked) and len(set(asked)) == 1
        met &= good
        print(
            f"{rate:.0f}/s needs {need}: asked {asked} from 30 s on: {'met' if good else 'NOT met'}"
        )
    plans = [d.plan for d in decisions if d.plan]
    for plan in plans[:: max(1, len(plans) // 6)]:
        print(f"  work: {plan.reasons['work']}\n  all: {plan.reasons['']}")
    return 0 if met else 1


def lag_verdict(decisions: list[Decision], change: tuple[float, float], event_s: float) -> int:
    """Print how a lag was answered; 0 when it was worked off and executors came back to the need
    within ``RETURN_S``.
    """
    start, rate = change
    need = needed(rate, event_s)
    after = [d for d in decisions if d.at >= start and d.plan and d.snapshot]
    asked = {d.at: d.plan.executors or 0 for d in after if d.plan}
    late = {d.at: d.snapshot.samples["work"].backlog for d in after if d.snapshot}
    usual = 10 * rate
    peak_at = max(late, key=lambda at: late[at])
    gone = next((at for at in late if at > peak_at and late[at] <= usual), None)
    reason = next(d.plan.reasons["work"] for d in after if d.at == peak_at and d.plan)
    print(f"asked for {max(asked.values())} at most; at the peak: {reason}")
    if gone is None:
        print("the lag was NOT worked off")
        return 1
    back = next((at for at in asked if at >= gone and asked[at] <= need + 1), None)
    good = back is not None and back - gone <= RETURN_S
    print(
        f"{late[peak_at]:.0f} events waited, gone after {gone - start:.0f} s; back at "
        f"{need} or {need + 1} executors "
        + (f"{back - gone:.0f} s later" if back is not None else "never")
        + f": {'met' if good else 'NOT met'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
