"""Planners by name: one line per method."""

from __future__ import annotations

from foretide.parts import Planner
from foretide.registry import Part, Registry

PLANNERS: Registry[Planner] = Registry(
    "planner",
    (
        Part("static", "foretide.plan.static:Static", "the same replicas for every operator, always", "baseline"),
        Part(
            "reactive",
            "foretide.plan.reactive:Reactive",
            "what the last window needed, in the next one",
            "BGElasor, SREA",
        ),
    ),
)
