"""Lead time of executors: seconds from asking the cluster manager until an executor is registered.

Measured whenever executors are asked for, by cluster manager, and remembered across runs in one
JSON file, so that the next run knows it before it has asked for anything.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

KEPT = 20
"""Measurements kept per cluster manager."""
PATIENCE_S = 900.0
"""A request that nothing answered for so long says nothing about the lead time."""
_decoder = msgspec.json.Decoder(dict[str, list[float]])


def cluster_manager(master: str) -> str:
    """The kind of cluster behind a master address.

    >>> masters = ("local[4]", "local-cluster[2,1,768]", "spark://h:7077", "yarn")
    >>> [cluster_manager(m) for m in masters]
    ['local', 'local-cluster', 'standalone', 'yarn']
    >>> cluster_manager("k8s://https://h:6443")
    'kubernetes'
    """
    if master.startswith("local-cluster"):
        return "local-cluster"
    kind = master.partition("[")[0].partition(":")[0]
    return {"spark": "standalone", "k8s": "kubernetes"}.get(kind, kind)


def default_path() -> Path:
    """Where lead times are remembered: the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "foretide" / "lead_times.json"


class LeadTimes:
    """Measured lead times. ``initial_s`` is taken while nothing was measured; without ``path``
    nothing is remembered. A file that cannot be read or written only costs the memory.

    >>> times = LeadTimes(initial_s=30.0)
    >>> times.asked(at=100.0, executors=2)
    >>> times.observe("yarn", registered_at=[50.0, 108.0])
    >>> times.lead_s("yarn"), times.lead_s("kubernetes")
    (8.0, 30.0)
    """

    def __init__(self, path: Path | None = None, initial_s: float | None = None) -> None:
        self.path = path
        self.initial_s = initial_s
        self._measured: dict[str, list[float]] = {}
        self._asked: list[float] = []
        self._seen_until = 0.0
        if path is not None:
            try:
                self._measured = _decoder.decode(path.read_bytes())
            except (OSError, msgspec.DecodeError):
                self._measured = {}

    def asked(self, at: float, executors: int) -> None:
        """``executors`` more were asked for; those asked for before and not there yet are among
        them.
        """
        waiting = self._asked[-executors:] if executors else []
        self._asked = waiting + [at] * (executors - len(waiting))

    def observe(self, manager: str, registered_at: Sequence[float]) -> None:
        """Match executors that registered since the last call with the requests they answer."""
        new = sorted(t for t in registered_at if t > self._seen_until)
        if registered_at:
            self._seen_until = max(self._seen_until, *registered_at)
        came = []
        for at in new:
            self._asked = [a for a in self._asked if at - a <= PATIENCE_S]
            if self._asked and at >= self._asked[0]:
                came.append(at - self._asked.pop(0))
        if came:
            self._measured[manager] = [*self._measured.get(manager, []), *came][-KEPT:]
            self._save()

    def lead_s(self, manager: str) -> float | None:
        """Median of the measured lead times, else ``initial_s``."""
        measured = self._measured.get(manager)
        return statistics.median(measured) if measured else self.initial_s

    def _save(self) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fd, name = tempfile.mkstemp(dir=self.path.parent, prefix=".lead-")
            with os.fdopen(fd, "wb") as f:
                f.write(msgspec.json.encode(self._measured))
            os.replace(name, self.path)
        except OSError:
            self.path = None
