"""Faults for tests: a clock that jumps, a disk that fills, a probe that hangs."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foretide.clock import WallClock
from foretide.model import Plan, Snapshot
from foretide.testing import ScriptedEnvironment
from foretide.topology import Operator, Topology

PAIR = Topology((Operator("a", (), 1, 20), Operator("b", ("a",), 1, 20)))


class JumpingClock(WallClock):
    """A machine's two clocks. Waiting advances both; ``set_wall`` moves the wall clock alone (set
    by hand or by NTP, or a machine that was suspended), ``freeze`` both (a stopped process).
    """

    def __init__(self, at: float = 1_000_000.0) -> None:
        self.wall_s, self.monotonic_s = at, 77.0
        self.waits: list[float] = []
        super().__init__(lambda: self.wall_s, lambda: self.monotonic_s)

    def set_wall(self, seconds: float) -> None:
        self.wall_s += seconds

    def freeze(self, seconds: float) -> None:
        self.wall_s += seconds
        self.monotonic_s += seconds

    def wait_until(self, at: float, stop: threading.Event) -> None:
        self.waits.append(max(0.0, at - self.now()))
        self.freeze(self.waits[-1])


class MeasuredWorld:
    """100 events/s at 50 ms each for ``a``, then ``b``: five replicas each keep up. Window lengths
    are what the loop's instants say, as a live probe measures them; counts are of the seconds that
    really passed. ``before_read`` is the place for a fault.
    """

    def __init__(self, clock: JumpingClock) -> None:
        self.clock = clock
        self.inner = ScriptedEnvironment(PAIR, {"a": 0.05, "b": 0.05}, lambda at: 100.0)
        self.before_read: Callable[[], None] = lambda: None
        self.offline_s = 0.0
        self._at: float | None = None
        self._passed = clock.monotonic_s

    @property
    def replicas(self) -> dict[str, int]:
        return self.inner.replicas

    def apply(self, plan: Plan) -> None:
        self.inner.apply(plan)

    def read(self, now: float) -> Snapshot:
        self.before_read()
        passed = self.clock.monotonic_s + self.offline_s - self._passed
        self._passed += passed
        self.inner.window_s = max(passed, 1e-9)
        window_s = passed if self._at is None else max(now - self._at, 1e-9)
        self._at = now
        return replace(self.inner.read(self._passed), at=now, window_s=window_s)


class FullDisk:
    """From ``fill`` on, every write under ``root`` raises ENOSPC; ``room`` bytes of the first
    ``os.write`` still fit.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root, self.full, self.room = str(root), False, 0
        self._write, self._open = os.write, open
        monkeypatch.setattr("os.write", self._write_some)
        monkeypatch.setattr("builtins.open", self._open_file)

    def fill(self, room: int = 0) -> None:
        self.full, self.room = True, room

    def free(self) -> None:
        self.full = False

    def _write_some(self, fd: int, data: bytes) -> int:
        if self.full and os.readlink(f"/proc/self/fd/{fd}").startswith(self.root):
            room, self.room = self.room, 0
            if not room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self._write(fd, data[:room])
        return self._write(fd, data)

    def _open_file(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if self.full and str(file).startswith(self.root) and set(mode) & set("wax+"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._open(file, mode, *args, **kwargs)
