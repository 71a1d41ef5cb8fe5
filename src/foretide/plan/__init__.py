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
        Part(
            "autoscale-plus",
            "foretide.plan.autoscale_plus:AutoscalePlus",
            "input through the graph against usable CPU, with a working interval",
            "DABS-Storm, section 4",
        ),
        Part("incremental", "foretide.plan.incremental:Incremental", "one replica up or down on CPU thresholds", "DABS-Storm, 7.2"),
        Part("rlearning", "foretide.plan.rlearning:RateLearning", "a learned table from input rate to degree", "DABS-Storm, 7.2"),
        Part("thresholds", "foretide.plan.thresholds:Thresholds", "hosts above or below a utilization shed or go", "FUGU, IV-A, B"),
        Part("sarsa", "foretide.plan.sarsa:Sarsa", "each host learns when to shed and when to go", "FUGU, section IV-C"),
    ),
)
