"""Groupings as whole numbers, for the compiled code of both engines.

The built-in groupings have compiled rules in the event engines, which decide event by event. Any
other registered grouping has the code CUSTOM there: its own ``assign`` is called. ``shared`` (one
queue per operator) and ``oracle`` (least true work) exist only in simulations.
"""

from __future__ import annotations

from foretide.balance import GROUPINGS
from foretide.errors import unknown

SHARED, SHUFFLE, KEY, TWO_CHOICES, LOAD_AWARE, OSG, ORACLE, CUSTOM = range(8)
COMPILED = {
    "shared": SHARED,
    "shuffle": SHUFFLE,
    "key-hash": KEY,
    "two-choices": TWO_CHOICES,
    "load-aware": LOAD_AWARE,
    "osg": OSG,
    "oracle": ORACLE,
}


def grouping_code(name: str) -> int:
    """The code of a grouping in the event engines.

    >>> grouping_code("key-hash") == KEY
    True
    """
    if name in COMPILED:
        return COMPILED[name]
    if name in GROUPINGS:
        return CUSTOM
    raise unknown("grouping", name, tuple(dict.fromkeys((*COMPILED, *GROUPINGS.names))))


def queue_code(name: str) -> int:
    """SHARED, SHUFFLE or KEY: the rule whose queues a grouping's queues resemble most.

    Groupings that balance hold about what round-robin holds.
    """
    code = grouping_code(name)
    if code == CUSTOM:
        return KEY if GROUPINGS.build(name).traits.keeps_keys else SHUFFLE
    return code if code in (SHARED, KEY) else SHUFFLE
