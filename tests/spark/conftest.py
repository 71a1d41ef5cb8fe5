"""One Spark session for all tests that need one; folders and pipelines are each test's own."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from foretide.demo.broker import jars
from foretide.spark import session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on the shared session run one after another in one process; those that start a Spark of
    their own may run beside them.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("session"))


def end_idle_java() -> None:
    """End the Java process that an earlier test of this process left: jars are loaded at its start
    only.
    """
    gateway: Any = SparkContext._gateway
    if gateway is not None and SparkContext._active_spark_context is None:
        gateway.shutdown()
        if (process := getattr(gateway, "proc", None)) is not None:
            process.stdin.close()
            process.wait(timeout=60)
        SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    end_idle_java()
    connector = ",".join(map(str, jars("spark")))  # empty: the Kafka tests are skipped
    settings = {"spark.jars": connector} if connector else {}
    shared = session("foretide-tests", master="local[16]", short_run=True, settings=settings)
    shared.sparkContext.setLogLevel("OFF")
    yield shared
    shared.stop()
