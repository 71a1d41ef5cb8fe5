"""The period of a load, found in the load itself."""

from __future__ import annotations

import numpy as np

from foretide.forecast.gaps import filled
from foretide.model import Array


def period(series: Array, least: float = 0.2, last: int = 20_160) -> int | None:
    """Windows per season, or None when there is none to rely on.

    The autocorrelation of the last ``last`` windows, less a straight line and with the highest 1 %
    clipped: a season is a peak that stands ``least`` above the lowest point before it and half of
    that above 0. Of the peaks almost as high as the highest the first counts, so that a day is
    preferred to a week. A season must have been seen more than twice.

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
    bound = np.quantile(np.abs(flat), 0.99)
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
