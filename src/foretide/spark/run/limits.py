"""How many events a batch, or a piece of one, takes: what the operator's replicas work off in two
triggers, so that the next change of replicas takes effect soon; on a busy machine, where a batch
costs more beside its work, as much as makes that worth it.

The edge source reads a limit from its file. Service times are kept in the run folder: a restart
goes on with what was learned.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping

from foretide.clock import LEAST_EVENTS, span_s
from foretide.files import replace_file
from foretide.spark.edge.source import NO_LIMIT
from foretide.spark.run.folder import RunFolder

log = logging.getLogger(__name__)
FIRST = 100
"""Events per replica in the first batch, before anything is known of the service time."""
FILE_EVENTS = 1000
"""Events per file for consumers whose service time is unknown."""
MOST_STRETCH = 100.0
"""Times by which a batch may be larger while most of its events are dropped unprocessed."""
KEPT_CHANGE = 0.2
"""Relative change of a service time that is worth writing down."""


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
        self._replicas = replicas
        self._fixed = dict(fixed or {})
        self._trigger_s = trigger_s
        self._kept = folder.saved_service_times()
        self._service_time_s = {n: s for n, s in self._kept.items() if n in replicas}
        self._limits: dict[str, int] = {}
        self._stretch: dict[str, float] = {}
        self._overhead_s: dict[str, float] = {}
        self._changing = threading.Lock()  # the loop's thread and those of batches renew limits
        for name in replicas:
            if name in self._fixed:
                self._set(name, self._fixed[name])
            else:
                self.renew(name)

    def observe(
        self, name: str, busy_s: float, events: int, overhead_s: float | None = None
    ) -> None:
        """A batch of ``events`` took ``busy_s`` seconds of all replicas together, and
        ``overhead_s`` beside its work.
        """
        if overhead_s is not None:
            mean_s = self._overhead_s.get(name, overhead_s)
            self._overhead_s[name] = 0.5 * (mean_s + overhead_s)
        now, before = busy_s / events, self._service_time_s.get(name)
        learned = self._service_time_s[name] = now if before is None else 0.5 * (before + now)
        kept = self._kept.get(name)
        if kept is None or abs(learned - kept) > KEPT_CHANGE * kept:
            with self._changing:
                self._kept[name] = learned
                self._folder.save_service_times(self._kept)
        self.renew(name)

    def dropped(self, name: str, share: float) -> None:
        """The share of the last events that were dropped unprocessed: they cost nothing, so that
        the next batch may take more. Without this an operator that fell behind its timeout would
        go on dropping a small batch at a time.
        """
        stretch = min(MOST_STRETCH, 1 / max(1 - share, 1e-9))
        if self._stretch.get(name, 1.0) != stretch:
            self._stretch[name] = stretch
            self.renew(name)

    def service_time_s(self, name: str) -> float | None:
        """Busy seconds per event, as last observed here or in an earlier run."""
        return self._service_time_s.get(name)

    def of(self, name: str) -> int:
        """Events that the operator's replicas should take at once now."""
        return self._limits[name]

    def renew(self, name: str) -> None:
        """Fit the limit to the service time and the replicas of this moment."""
        if name in self._fixed:
            return
        with self._changing:
            replicas, service_time_s = self._replicas[name], self._service_time_s.get(name)
            limit = FIRST * replicas
            if service_time_s is not None:
                work_s = span_s(self._trigger_s, self._overhead_s.get(name, 0.0))
                limit = max(LEAST_EVENTS, int(work_s * replicas / max(service_time_s, 1e-9)))
            limit = int(limit * self._stretch.get(name, 1.0))
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
        limits = [
            self._limits[c] if c in self._service_time_s or c in self._fixed else FILE_EVENTS
            for c in consumers
            if c in self._limits
        ]
        return min(limits, default=0) if min(limits, default=NO_LIMIT) < NO_LIMIT else 0
