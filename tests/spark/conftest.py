"""One Spark session for all tests that need one; folders and pipelines are each test's own."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from foretide.spark import session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on the shared session run one after another in one process; those that start a Spark of
    their own may run beside them.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("session"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    found = session("foretide-tests", master="local[16]", short_run=True)
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()
