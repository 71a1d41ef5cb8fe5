"""A recorded day at speed, three ways to size executors for it: fixed at the peak, Spark's dynamic
allocation, attach.

Real Kafka, a topic of 8 partitions, 10 ms of waiting per event, a batch every 2 s. Each way gets
the same load in a session of its own, after half a minute at its first rate, in which Python and
the JVM warm up and nothing is counted. Events carry the time at which they were sent; the query
writes that time to a second topic, so latency is from Kafka's timestamp at the source to the one at
the sink. Prints executor-seconds, p50 and p99 latency and the share within the target.

    python benchmarks/attach_day.py LOAD.csv [--minutes 5] [--max 4] [--ways fixed,dynamic,attach]
        [--cluster standalone]

The load is scaled so that its peak keeps ``--peak`` slots busy.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from attach_steps import EVENT_S, PARTITIONS, TOPIC, cluster, session, waiting_work
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import foretide
from foretide.demo.broker import Broker
from foretide.load import load
from foretide.spark.control.executors import ExecutorPool

TARGET_S, WARM_UP_S = 10.0, 30
WAYS = ("fixed", "dynamic", "attach")


def day(file: str, minutes: float, peak_slots: float, number: int | None = None) -> np.ndarray:
    """Events/s for every second of the run: a recorded day (the one with the highest peak, unless
    its number is given), compressed.
    """
    recorded = load(file)
    rows = round(86_400 / recorded.interval_s)
    whole = recorded.rates()
    days = whole[: len(whole) // rows * rows].reshape(-1, rows)
    rates = days[int(days.max(axis=1).argmax()) if number is None else number]
    seconds = round(60 * minutes)
    edges = np.linspace(0, len(rates), seconds + 1).astype(int)
    means = np.array([rates[a : max(a + 1, b)].mean() for a, b in pairwise(edges)])
    return means * (peak_slots / EVENT_S / means.max())


def sent(servers: str, rates: np.ndarray) -> None:
    """Send the load in real time; the record's own timestamp is when it was sent."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
    start, owed, number = time.monotonic(), 0.0, 0
    last = start
    while (now := time.monotonic()) - start < len(rates):
        owed += (now - last) * rates[int(now - start)]
        last = now
        for _ in range(int(owed)):
            producer.produce(TOPIC, b"x", partition=number % PARTITIONS)
            number += 1
        owed -= int(owed)
        producer.poll(0)
        time.sleep(0.05)
    producer.flush(20)


def settings_of(way: str, most: int) -> dict[str, str]:
    """Settings of the session that belong to one way."""
    if way != "dynamic":
        return {}
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": str(most),
    }


def one_way(
    way: str,
    servers: str,
    master: str,
    most: int,
    rates: np.ndarray,
    folder: Path,
    keep: Path | None,
) -> tuple[float, float]:
    """Run the load one way; executor-seconds, and when the day began."""
    spark = session(master, most, settings_of(way, most))
    events = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "latest")
        .load()
        .selectExpr("cast(unix_millis(timestamp) as string) as value")
    )
    query = (
        events.mapInPandas(waiting_work(), events.schema)
        .writeStream.queryName("work")
        .format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", f"done-{way}")
        .option("checkpointLocation", str(folder / f"checkpoint-{way}"))
        .trigger(processingTime="2 seconds")
        .start()
    )
    pool = ExecutorPool(spark)
    while not query.lastProgress:
        time.sleep(0.2)
    watcher = None
    if way == "attach":
        watcher = foretide.attach(
            spark, target_latency_s=TARGET_S, max_executors=most, mode="act",
            run_dir=keep or folder / "run",
        )  # fmt: skip
    warm = np.full(WARM_UP_S, rates[0])
    sent(servers, warm)
    began = time.time()
    producer = threading.Thread(target=sent, args=(servers, rates), daemon=True)
    producer.start()
    used, last = 0.0, time.monotonic()
    while producer.is_alive():
        time.sleep(0.5)
        now = time.monotonic()
        used += len(pool.live()) * (now - last)
        last = now
    time.sleep(2 * TARGET_S)
    if watcher:
        watcher.stop()
        print("summary: " + watcher.account.line(watcher.settings.share), flush=True)
    query.stop()
    spark.stop()
    return used, began


def latencies(servers: str, topic: str, began: float) -> np.ndarray:
    """Seconds from the source's timestamp to the sink's, of every event in a topic that was sent
    since then.
    """
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic})
    consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    ages, empty = [], 0
    while empty < 3:
        records = consumer.consume(5000, 1.0)
        empty = 0 if records else empty + 1
        ages += [(r.timestamp()[1], int(r.value())) for r in records if not r.error()]
    consumer.close()
    return np.array([(done - start) / 1e3 for done, start in ages if start >= 1e3 * began])


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("load")
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("--max", type=int, default=4)
    options.add_argument("--peak", type=float, default=3.0, help="slots busy at the peak")
    options.add_argument("--day", type=int, help="day of the recording; default: highest peak")
    options.add_argument("--ways", default=",".join(WAYS))
    options.add_argument("--keep", type=Path, help="folder in which attach's journal stays")
    options.add_argument("--one", help=argparse.SUPPRESS)
    options.add_argument("--cluster", choices=("local", "standalone"), default="local")
    options.add_argument("--servers", help=argparse.SUPPRESS)
    options.add_argument("--master", help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = options.parse_args()
    rates = day(args.load, args.minutes, args.peak, args.day)
    if args.one:
        given = (args.one, args.servers, args.master, args.max, rates, args.folder, args.keep)
        result = one_way(*given)
        print("USED " + json.dumps(result), flush=True)
        return
    print(
        f"{rates.sum():.0f} events in {args.minutes:g} min, {rates.min():.0f} to "
        f"{rates.max():.0f}/s"
    )
    print("way       executor-s   p50 s   p99 s  within 10 s   events")
    with (
        tempfile.TemporaryDirectory() as name,
        Broker(Path(name) / "broker") as broker,
        cluster(args.cluster, Path(name), args.max) as master,
    ):
        admin = AdminClient({"bootstrap.servers": broker.servers})
        ways = args.ways.split(",")
        for topic in (TOPIC, *(f"done-{w}" for w in ways)):
            admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
        for way in ways:
            child = [sys.executable, __file__, *sys.argv[1:], "--one", way]
            child += ["--servers", broker.servers, "--master", master, "--folder", name]
            done = subprocess.run(child, stdout=subprocess.PIPE, text=True, check=True)
            for note in done.stdout.splitlines():
                if note.startswith("summary: "):
                    print(note)
            line = next(x for x in done.stdout.splitlines() if x.startswith("USED "))
            used, began = json.loads(line.removeprefix("USED "))
            ages = latencies(broker.servers, f"done-{way}", began)
            p50, p99 = np.quantile(ages, [0.5, 0.99])
            within = 100 * float((ages <= TARGET_S).mean())
            print(
                f"{way:9} {used:10.0f} {p50:7.1f} {p99:7.1f} {within:10.2f} % {len(ages):8}",
                flush=True,
            )


if __name__ == "__main__":
    main()
