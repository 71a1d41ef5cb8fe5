"""Holes in a series: what every forecaster does about NaN."""

from __future__ import annotations

import numpy as np

from foretide.errors import NotReady
from foretide.model import Array


def filled(series: Array, least: int = 1) -> Array:
    """The series with holes filled by straight lines between their neighbours, ends held flat.

    Raises NotReady when fewer than ``least`` windows were measured.

    >>> filled(np.array([np.nan, 1.0, np.nan, 3.0]))
    array([1., 1., 2., 3.])
    """
    values = np.asarray(series, dtype=float)
    known = np.isfinite(values)
    if known.sum() < max(1, least):
        raise NotReady(
            f"{int(known.sum())} windows measured so far; this forecaster needs {max(1, least)}"
        )
    if known.all():
        return values
    at = np.arange(len(values))
    return np.asarray(np.interp(at, at[known], values[known]), dtype=float)
