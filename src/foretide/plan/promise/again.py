"""Idle replicas that will be wanted again, by how it was of late. Times are in windows."""

from __future__ import annotations

import numpy as np

from foretide.model import Array

OFTEN = 2
"""Restarts within the memory from which on they are no accident: a load that falls is not held up
by the noise on its way.
"""
LAST = 60
"""Windows that are looked at, at most."""


def wanted_again(past: Array, recent: int, restart: float) -> Array:
    """The most replicas per operator (columns) that are worth keeping though fewer are wanted now.

    ``past`` are the replicas wanted in the last windows, oldest first. A replica is worth keeping
    when it was wanted in the ``recent`` windows, and when giving it back whenever it was idle would
    have cost more than keeping it: its restarts, each as much as ``restart`` windows of a replica,
    against the windows in which it was idle.

    >>> flips, falls = [8, 9, 8, 9, 8, 9, 8, 8], [15, 14, 13, 12, 11, 10, 9, 8]
    >>> wanted_again(np.array([flips, falls], dtype=float).T, recent=5, restart=7.5)
    array([9., 0.])
    """
    past = past[-LAST:]
    kept = np.zeros(past.shape[1])
    most = past[-recent:].max(axis=0)
    for level in past:
        idle = past < level
        restarts = (idle[:-1] & ~idle[1:]).sum(axis=0)
        cheaper = np.maximum(restarts, 1) * restart > idle.sum(axis=0)
        pays = (restarts >= OFTEN) & cheaper & (level <= most)
        kept = np.maximum(kept, np.where(pays, level, 0.0))
    return kept
