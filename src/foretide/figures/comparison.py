"""Comparison: the runs of several systems under one load, as ``foretide compare`` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foretide.figures.account import PROMISED
from foretide.figures.summary import Summary
from foretide.topology import Topology


@dataclass(frozen=True, slots=True)
class Conditions:
    """What every system ran under. ``lead_s`` is the time that new capacity took until it worked;
    ``started_at`` is the UTC time of the first row that counts, where the load has one; systems had
    run for ``warm_up_s`` before it. ``share`` of the events was promised to be within the target.
    """

    app: str
    app_summary: str
    topology: Topology
    load: str
    events: float
    peak: float
    duration_s: float
    window_s: float
    target_latency_s: float | None
    lead_s: float | None = None
    started_at: float | None = None
    warm_up_s: float = 0.0
    share: float = PROMISED


@dataclass(frozen=True, eq=False)
class Comparison:
    """The runs in the order asked for; ``left_out`` gives the reason for every system without a
    run.
    """

    conditions: Conditions
    runs: tuple[Summary, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    target_optimum_cost: float | None = None

    @property
    def optimum_cost(self) -> float | None:
        return self.runs[0].optimum_cost if self.runs else None

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract of ``foretide compare``."""
        return {
            "app": self.conditions.app,
            "load": self.conditions.load,
            "window_s": self.conditions.window_s,
            "lead_s": self.conditions.lead_s,
            "warm_up_s": self.conditions.warm_up_s,
            "share": self.conditions.share,
            "optimum_cost": self.optimum_cost,
            "target_optimum_cost": self.target_optimum_cost,
            "systems": [r.figures.as_dict() for r in self.runs],
        }
