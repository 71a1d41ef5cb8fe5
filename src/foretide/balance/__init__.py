"""Groupings: which replica gets which event. Pure array code, called by the Spark pipelines and by
the simulator.
"""

from __future__ import annotations

from foretide.balance.grouping import Grouping
from foretide.registry import Part, Registry

GROUPINGS: Registry[Grouping] = Registry(
    "grouping",
    (
        Part(
            "shuffle",
            "foretide.balance.shuffle:Shuffle",
            "one after another, round-robin",
            "Storm's default",
        ),
        Part(
            "key-hash",
            "foretide.balance.key_hash:KeyHash",
            "equal keys meet at one replica",
            "Storm's fields grouping",
        ),
        Part(
            "two-choices",
            "foretide.balance.two_choices:TwoChoices",
            "the less loaded of a key's two replicas",
            "partial key grouping",
        ),
        Part(
            "load-aware",
            "foretide.balance.load_aware:LoadAware",
            "the replica of lowest utilization",
            "PA-SPS, algorithm 1",
        ),
        Part(
            "osg",
            "foretide.balance.osg:OnlineShuffle",
            "the replica of least work, costs learned in sketches",
            "DABS-Storm, section 5",
        ),
    ),
)
