"""The future load, for baselines that use it: they run in the simulator only.

Owns the record. A planner that needs it takes a constant named ``future``, which
``System.foreseeing`` passes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foretide.model import Array
from foretide.plan.optimum import Schedule


@dataclass(frozen=True)
class Future:
    """What every operator will need: ``need[name][i]`` replicas in the window from ``start +
    i*window_s`` on. ``work`` is the same without rounding: replicas that are busy. A ``share`` of
    the events may wait ``spare_s`` seconds in all: the latency target less the service times.
    """

    start: float
    window_s: float
    need: Mapping[str, Schedule]
    work: Mapping[str, Array] = field(default_factory=dict)
    spare_s: float | None = None
    share: float = 0.99

    def window(self, now: float) -> int:
        """The index of the window that begins now; the last one when the future has run out."""
        length = min(len(n) for n in self.need.values())
        return min(max(0, round((now - self.start) / self.window_s)), length - 1)
