"""Groupings as whole numbers, for compiled code of both engines."""

from __future__ import annotations

SHARED, SHUFFLE, KEY, TWO_CHOICES, LOAD_AWARE, OSG, ORACLE = range(7)
GROUPINGS = {
    "shared": SHARED,
    "shuffle": SHUFFLE,
    "key-hash": KEY,
    "two-choices": TWO_CHOICES,
    "load-aware": LOAD_AWARE,
    "osg": OSG,
    "oracle": ORACLE,
}
