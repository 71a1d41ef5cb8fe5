"""A Spark session with the settings that pay for many small streaming queries in one application.

Owns which settings and why; a user who brings a session of their own only needs the ones that
``missing_settings`` names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession

SETTINGS: Mapping[str, str] = {
    # Operators share the slots fairly: one scheduler pool each.
    "spark.scheduler.mode": "FAIR",
    # A Python task talks to the JVM over a Unix socket: about 20 ms instead of 55 ms.
    "spark.python.unix.domain.socket.enabled": "true",
    # A new replica is a fork of a process that has everything loaded.
    "spark.python.daemon.module": "foretide.spark.worker.daemon",
    # A batch is small: plan it once, with few tasks, and read all its files in one.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Few small files behind each batch.
    "spark.sql.streaming.minBatchesToRetain": "5",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.sql.streaming.pollingDelay": "50ms",
    # Spark's own page costs a second at the start; a run with a dashboard turns it on.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "5000",
    "spark.sql.ui.retainedExecutions": "20",
    # An executor that is given back finishes its tasks and hands on its shuffle blocks first.
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
}

JVM_OPTIONS = "-XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK -Xss8m"
"""One collector thread, cheap child processes, and a stack deep enough for Spark's log redaction.
"""


def session(
    name: str = "foretide",
    master: str = "local[32]",
    short_run: bool = False,
    settings: Mapping[str, str] | None = None,
    preload: Sequence[str] = (),
) -> SparkSession:
    """A session for a pipeline; ``settings`` come last and win.

    ``master`` counts slots, not cores: replicas that wait (I/O) may be more than the machine's
    cores. ``short_run`` compiles less thoroughly, which pays for runs of a few minutes. ``preload``
    names modules that every Python worker should have loaded.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # The simple compiler's default cache of 48 MB is full after two minutes of Spark, and nothing
    # is compiled from then on.
    options = JVM_OPTIONS + (
        " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=160m" if short_run else ""
    )
    builder = SparkSession.builder.appName(name).master(master)
    if preload:
        os.environ["FORETIDE_PRELOAD"] = ",".join(preload)
        builder = builder.config(
            "spark.executorEnv.FORETIDE_PRELOAD", os.environ["FORETIDE_PRELOAD"]
        )
    loopback = master.startswith("local")
    wanted = {**SETTINGS, **(settings or {})}
    if loopback and wanted["spark.ui.enabled"] == "true":
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # where Spark's own page listens
    if loopback:
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.driver.bindAddress", "127.0.0.1"
        )
    builder = builder.config("spark.driver.extraJavaOptions", options).config(
        "spark.executor.extraJavaOptions", options
    )
    for key, value in wanted.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def missing_settings(spark: SparkSession) -> tuple[str, ...]:
    """Settings without which a pipeline runs, but slower or unfairly; one ``key=value`` each."""
    wanted = (
        "spark.scheduler.mode",
        "spark.python.unix.domain.socket.enabled",
        "spark.sql.adaptive.enabled",
    )
    conf = spark.sparkContext.getConf()
    return tuple(f"{k}={SETTINGS[k]}" for k in wanted if conf.get(k, "") != SETTINGS[k])


@contextmanager
def session_settings(spark: SparkSession, pool: str, conf: Mapping[str, str]) -> Iterator[None]:
    """Session settings that a query started inside keeps for itself."""
    before = {k: spark.conf.get(k) for k in conf}
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
    for k, v in conf.items():
        spark.conf.set(k, v)
    try:
        yield
    finally:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
        for k, old in before.items():
            if old is not None:
                spark.conf.set(k, old)
