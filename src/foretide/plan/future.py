"""The future load, for baselines that use it: they run in the simulator only.

Owns the record. A planner that needs it takes a constant named ``future``, which
``System.foreseeing`` passes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from foretide.model import Array
from foretide.plan.optimum import Schedule


@dataclass(frozen=True)
class Future:
    """What every operator will need: ``need[name][i]`` replicas in the window from ``start +
    i*window_s`` on. ``work`` is the same without rounding: replicas that are busy; ``fine`` has a
    row per window and the same for each equal part of it, where the load changes within one. A
    ``share`` of the events may wait ``spare_s`` seconds in all: the latency target less the service
    times. ``sent[p, c]`` is the work that p's work causes at c, per unit of it, for every edge.
    Figures count from window ``counted_from`` on: those before are a warm-up.
    """

    start: float
    window_s: float
    need: Mapping[str, Schedule]
    work: Mapping[str, Array] = field(default_factory=dict)
    spare_s: float | None = None
    share: float = 0.99
    sent: Mapping[tuple[str, str], float] = field(default_factory=dict)
    fine: Mapping[str, Array] = field(default_factory=dict)
    counted_from: int = 0

    def parts(self, name: str) -> Array:
        """Replica-windows of work in every window (row) and part of it."""
        if name not in self.fine:
            return np.asarray(self.work[name], dtype=float)[:, None]
        fine = self.fine[name]
        return np.asarray(fine / fine.shape[1], dtype=float)

    def window(self, now: float) -> int:
        """The index of the window that begins now; the last one when the future has run out."""
        length = min(len(n) for n in self.need.values())
        return min(max(0, round((now - self.start) / self.window_s)), length - 1)
