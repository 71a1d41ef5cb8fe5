"""What a series of windows tells of itself: what its holes hold, and whether it repeats."""

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


def period(
    series: Array, least: float = 0.2, last: int = 20_160, below: float = 0.99
) -> int | None:
    """Windows per season, or None when there is none to rely on.

    The autocorrelation of the last ``last`` windows, less a straight line and with what is beyond
    the quantile ``below`` clipped: a season is a peak that stands ``least`` above the lowest point
    before it and half of that above 0. Of the peaks almost as high as the highest the first counts,
    so that a day is preferred to a week. A season must have been seen more than twice.

    >>> period(100 + 50 * np.sin(2 * np.pi * np.arange(100) / 12))
    12
    >>> period(np.arange(100.0)) is None
    True
    """
    if np.isfinite(series).sum() < 12:
        return None
    values = filled(series[-last:])
    n, at = len(values), np.arange(len(values))
    flat = values - np.polyval(np.polyfit(at, values, 1), at)
    bound = np.quantile(np.abs(flat), below)
    flat = np.clip(flat, -bound, bound)
    flat -= flat.mean()
    if np.abs(flat).max() <= 1e-9 * max(1.0, float(np.abs(values).max())):
        return None
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(flat, size)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum), size)[: int(n / 2.2) + 1]
    correlation = correlation / correlation[0] * n / (n - np.arange(len(correlation)))
    rise = correlation - np.minimum.accumulate(correlation)
    inner = np.arange(2, len(correlation) - 1)
    peaks = inner[
        (correlation[inner] >= correlation[inner - 1])
        & (correlation[inner] >= correlation[inner + 1])
    ]
    peaks = peaks[(rise[peaks] >= least) & (correlation[peaks] >= least / 2)]
    if not len(peaks):
        return None
    first = peaks[rise[peaks] >= 0.8 * rise[peaks].max()][0]
    near = peaks[(peaks >= first) & (peaks <= 1.15 * first)]
    return int(near[np.argmax(correlation[near])])
