"""Executors without a cluster."""

from types import SimpleNamespace
from typing import Any

import pytest

from foretide.spark.control.executors import Executors


def test_cores_are_asked_for_until_an_executor_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    live: list[Any] = []
    monkeypatch.setattr(Executors, "_live", lambda self: live)
    executors = object.__new__(Executors)
    executors._cores = 0
    assert executors.wanted_for(8) == 8
    live.append(SimpleNamespace(totalCores=lambda: 4))
    assert executors.wanted_for(8) == 2
