"""The load before the first window: what was recorded, for as long as it can be of this load."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from foretide.history import History
from foretide.model import Array

FIRST = range(3, 13)
"""Windows of the run by which the past is judged."""
BEYOND = 1.25
"""How far beyond all changes of the past the change into the run may be."""


class Past:
    """What came before the run: ``recorded`` (see ``remember``), and in its place the windows of an
    earlier run where those are known.
    """

    def __init__(self) -> None:
        self.recorded: Array = np.empty(0)
        self._began: float | None = None
        self._set_aside_at: float | None = None

    def remember(self, recorded: Array) -> None:
        """The load of one source until the run begins, events/s; NaN where it is unknown."""
        self.recorded = recorded if np.isfinite(recorded).any() else np.empty(0)

    def begin(self, history: History) -> None:
        """The run begins with its newest window, unless it has begun."""
        if self._began is None:
            self._began = history.now - history.window_s
            self.recorded = self.recorded * len(history.topology.sources)

    def load(self, history: History, last: int) -> Array:
        """Events/s of all sources in the last windows, those before the run included."""
        load = history.load(last)
        if not len(self.recorded) or self._began is None:
            return load
        since = min(len(load), max(0, round((history.now - self._began) / history.window_s)))
        earlier, run = load[: len(load) - since], load[len(load) - since :]
        before = np.full(max(len(self.recorded), len(earlier)), np.nan)
        before[len(before) - len(self.recorded) :] = self.recorded
        known = np.isfinite(earlier)
        before[len(before) - len(earlier) :][known] = earlier[known]
        if len(run) in FIRST and not goes_on(before, run):
            self.recorded, self._set_aside_at = np.empty(0), history.now
            return load
        return np.concatenate((before, run))[-last:]

    def doubt(self, now: float) -> str | None:
        """Why the recorded load is not followed, in the step in which it is set aside."""
        if self._set_aside_at != now:
            return None
        return "the recorded past is set aside: from it to the load now is a step that it never saw"


def goes_on(before: Array, run: Array) -> bool:
    """Whether ``run`` can follow ``before``: its mean over that of as many windows before is within
    what such steps have been. Rules learned on another load, or on this one at another scale, would
    be far off for minutes.

    >>> before = np.tile([1.0, 2.0, 3.0, 2.0], 10)
    >>> goes_on(before, np.array([1.0, 2.0, 3.0])), goes_on(before, np.array([3.0, 6.0, 9.0]))
    (True, False)
    """
    if len(before) < len(run) or not np.isfinite(run).any():
        return True
    least = max(1e-12, 0.01 * float(np.nanmean(before)))
    means = np.log(sliding_window_view(before, len(run)).mean(axis=1) + least)
    known = np.flatnonzero(np.isfinite(means))
    if not len(known):
        return True
    last = int(known[-1])
    apart = len(before) - last  # from the beginning of those windows to that of the run
    steps = means[apart:] - means[:-apart]
    steps = steps[np.isfinite(steps)]
    if not len(steps):
        return True
    step, more = np.log(np.nanmean(run) + least) - means[last], np.log(BEYOND)
    return bool(steps.min() - more <= step <= steps.max() + more)
