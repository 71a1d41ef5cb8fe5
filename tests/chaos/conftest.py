"""Faults as fixtures."""

from pathlib import Path

import pytest
from faults import FullDisk, JumpingClock, MeasuredWorld


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
def world(clock: JumpingClock) -> MeasuredWorld:
    return MeasuredWorld(clock)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FullDisk:
    return FullDisk(monkeypatch, tmp_path)
