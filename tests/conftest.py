"""Fixtures that tests in more than one folder share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # the client library is loaded by the tests that use a broker
    from broker import Topics

    from foretide.demo.broker import Broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One Kafka broker for all tests of this process. Tests must not stop it: see
    ``own_broker``.
    """
    from broker import started_broker

    shared = started_broker(tmp_path_factory.mktemp("kafka"))
    yield shared
    shared.stop()


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that a test may stop, kill and start again."""
    from broker import started_broker

    own = started_broker(tmp_path_factory.mktemp("kafka"))
    yield own
    own.stop()


@pytest.fixture
def topics(broker: Broker) -> Topics:
    from broker import Topics

    return Topics(broker.servers)
