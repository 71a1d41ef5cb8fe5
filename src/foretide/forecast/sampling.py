"""Samples: means over several windows in a row, for models that look at the time index."""

from __future__ import annotations

import numpy as np

from foretide.model import Array
from foretide.series import filled


def samples(recent: Array, last: int, width: int, least: int) -> Array:
    """The last ``last`` means over ``width`` windows each, oldest first; windows that make no whole
    sample are left out at the old end. Raises NotReady below ``least`` samples.

    >>> samples(np.array([9.0, 1.0, 3.0, 5.0, 7.0]), last=12, width=2, least=1)
    array([2., 6.])
    """
    rates = filled(recent[-last * width :], least=least * width)
    whole = len(rates) // width * width
    return np.asarray(rates[len(rates) - whole :].reshape(-1, width).mean(axis=1))


def ahead(horizon: int, width: int) -> int:
    """How many samples cover ``horizon`` windows.

    >>> ahead(30, 5), ahead(6, 5)
    (6, 2)
    """
    return -(-horizon // width)


def windows(values: Array, horizon: int, width: int) -> Array:
    """Forecast samples as windows: each stands for ``width`` of them."""
    return np.repeat(values, width)[:horizon]
