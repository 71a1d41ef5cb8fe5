"""One Spark session for all tests that need one; folders and pipelines are each test's own."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from foretide.spark import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    found = session("foretide-tests", master="local[16]", short_run=True)
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()
