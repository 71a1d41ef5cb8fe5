"""How many events a batch takes: what the operator's replicas work off in two triggers, so that the
next change of replicas takes effect soon.

Knows service times and replicas; the edge source reads a limit from its file.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping

from foretide.files import replace_file
from foretide.spark.edge.source import NO_LIMIT
from foretide.spark.run.folder import RunFolder

log = logging.getLogger(__name__)
LEAST = 10
"""A batch may always take this many events."""


class Limits:
    """The limit of every operator's batches. ``fixed`` ones stay as they are."""

    def __init__(
        self,
        folder: RunFolder,
        trigger_s: float,
        replicas: Mapping[str, int],
        fixed: Mapping[str, int] | None = None,
    ) -> None:
        self._folder = folder
        self._trigger_s = trigger_s
        self._replicas = replicas
        self._fixed = dict(fixed or {})
        self._service_time_s: dict[str, float] = {}
        self._limits: dict[str, int] = {}
        self._changing = threading.Lock()  # the loop's thread and those of batches renew limits
        for name, limit in self._fixed.items():
            self._set(name, limit)

    def observe(self, name: str, busy_s: float, events: int) -> None:
        """A batch of ``events`` took ``busy_s`` seconds of all replicas together."""
        now, before = busy_s / events, self._service_time_s.get(name)
        self._service_time_s[name] = now if before is None else 0.5 * (before + now)
        self.renew(name)

    def renew(self, name: str) -> None:
        """Fit the limit to the service time and the replicas of this moment."""
        service_time_s = self._service_time_s.get(name)
        if service_time_s is None or name in self._fixed:
            return
        with self._changing:
            busy_s = 2 * self._trigger_s * self._replicas[name]
            limit = max(LEAST, int(busy_s / max(service_time_s, 1e-9)))
            if self._limits.get(name) != limit:
                self._set(name, limit)

    def _set(self, name: str, limit: int) -> None:
        try:
            replace_file(self._folder.limit_file(name), str(limit).encode())
        except OSError as error:
            log.warning("operator '%s' keeps its batch limit: %s", name, error)
        else:
            self._limits[name] = limit

    def per_file(self, consumers: Iterable[str]) -> int:
        """Events per file that ``consumers`` read: a file holds no more than any of them takes in a
        batch. 0 is no limit.
        """
        known = [self._limits[c] for c in consumers if c in self._limits]
        return min(known, default=0) if min(known, default=NO_LIMIT) < NO_LIMIT else 0
