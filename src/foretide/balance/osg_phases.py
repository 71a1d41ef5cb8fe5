"""The scheduler's phases of Online Shuffle Grouping (DABS-Storm, section 5.2) where a batch is the
clock.

The published scheduler sends events round-robin until every replica sent its sketches; then it asks
all replicas how far they are off its estimate (SEND_ALL), waits for the answers (WAIT_ALL) and
assigns each event to the replica of least estimate (RUN). A replica sends new sketches, which lead
back to SEND_ALL, once they are stable: every N events it compares W/F with the snapshot before (eq.
14). Here a batch carries the questions and its end brings the answers of the replicas that took
part in it, so that WAIT_ALL lasts only while some replica got no event. More or other replicas have
to be asked too.
"""

from __future__ import annotations

import numpy as np

from foretide.balance.count_min import CostSketch
from foretide.model import Array

ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = "ROUND_ROBIN", "SEND_ALL", "WAIT_ALL", "RUN"


class Phases:
    """The phase of the next batch. ``window`` is N, counted over all replicas, ``mu`` the relative
    change of W/F up to which sketches are stable.
    """

    def __init__(self, window: int = 256, mu: float = 0.05) -> None:
        self.window = window
        self.mu = mu
        self.phase = ROUND_ROBIN
        self._waiting_for: set[int] = set()
        self._replicas = 0
        self._since = 0.0
        self._snapshot: Array | None = None

    def ended(self, processed: Array, sketch: CostSketch) -> None:
        """A batch ended: events per replica, and what all batches until now taught."""
        replicas = len(processed)
        if sketch.events <= 0:
            return
        if self.phase == ROUND_ROBIN or replicas != self._replicas:
            self._replicas = replicas
            self._ask(sketch)
            return
        if self.phase in (SEND_ALL, WAIT_ALL):
            self._waiting_for -= set(np.flatnonzero(processed > 0).tolist())
            self.phase = WAIT_ALL if self._waiting_for else RUN
            return
        self._since += float(processed.sum())
        if self._since < self.window:
            return
        if self._change(sketch) <= self.mu:
            self._ask(sketch)
        else:
            self._since, self._snapshot = 0.0, _ratios(sketch)

    def _ask(self, sketch: CostSketch) -> None:
        """New sketches, or new replicas: the next batch asks all replicas."""
        self.phase = SEND_ALL
        self._waiting_for = set(range(self._replicas))
        self._since, self._snapshot = 0.0, _ratios(sketch)

    def _change(self, sketch: CostSketch) -> float:
        """Equation 14: the summed change of W/F over the sum before, of the cells both hold."""
        now, before = _ratios(sketch), self._snapshot
        if before is None:
            return np.inf
        both = (now > 0) & (before > 0)
        total = float(before[both].sum())
        return float(np.abs(now - before)[both].sum()) / total if total > 0 else np.inf


def _ratios(sketch: CostSketch) -> Array:
    """W/F cell by cell; 0 where nothing came."""
    counts, times = sketch.counts.cells, sketch.times.cells
    return np.divide(times, counts, out=np.zeros_like(times), where=counts > 0)
