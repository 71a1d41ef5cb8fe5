"""Families of systems: those that decide in the same way get the same colour in a report."""

from __future__ import annotations

FAMILIES = {
    "Foretide": ("foretide", "attach"),
    "forecasting": ("bgelasor", "pa-sps", "psps", "spea", "dabs-storm"),
    "rate or queueing model": ("drs", "ds2"),
    "reactive": ("srea", "lcp", "incremental", "spark-dra", "backlog"),
    "host thresholds": ("fugu-local", "fugu-global"),
    "learning": ("rlearning", "fugu-rl"),
    "fixed": ("static", "static-peak", "static-mean"),
    "limit": ("clairvoyant", "clairvoyant-target"),
}
OTHER = "other"


def family(system: str) -> str:
    """The family of a system; a variant such as ``pa-sps-2`` or a user's own system is "other".

    >>> family("drs"), family("mine")
    ('rate or queueing model', 'other')
    """
    return next((name for name, members in FAMILIES.items() if system in members), OTHER)
