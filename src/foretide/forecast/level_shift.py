"""Level shifts: a load that jumps to another level and stays there."""

from __future__ import annotations

import numpy as np

from foretide.model import Array

CONFIRM = 3
REFERENCE = 30


def shifted(recent: Array, jump: float = 0.3) -> bool:
    """Whether the level changed exactly ``CONFIRM`` windows before the end.

    It did when the last ``CONFIRM`` windows all lie outside the range of the ``REFERENCE`` windows
    before them, on the same side; when the two medians differ by more than ``jump`` (a share of the
    older one) and by more than four times the median absolute deviation of the older windows; and
    when at least half of the difference came with the first new window. So a burst that is over
    sooner is no shift, and neither is a ramp. Windows without a measurement are left out; with too
    few windows the answer is no.

    >>> level = np.array([10.0, 11.0, 9.0] * 10)
    >>> shifted(np.append(level, [30.0, 31.0, 29.0])), shifted(np.append(level, [30.0, 31.0, 10.0]))
    (True, False)
    """
    known = recent[np.isfinite(recent)]
    if len(known) < CONFIRM + REFERENCE:
        return False
    after, before = known[-CONFIRM:], known[-CONFIRM - REFERENCE : -CONFIRM]
    if not (after.min() > before.max() or after.max() < before.min()):
        return False
    middle = float(np.median(before))
    spread = float(np.median(np.abs(before - middle)))
    change = abs(float(np.median(after)) - middle)
    at_once = abs(float(after[0] - before[-1]))
    return bool(change > max(4.0 * spread, jump * middle) and at_once > 0.5 * change)
