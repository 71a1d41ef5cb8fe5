"""The load shapes of the papers, each a function of its parameters and a seed. ``foretide.load``
gives them their names.

Days are replayed at one row per second of run time: a row stands for a minute of the day, so a day
lasts 1440 s of run time. Counts are whole events.
"""

from __future__ import annotations

import numpy as np

from foretide.load.series import Load
from foretide.model import Array

MINUTES_PER_DAY = 1440


def _noise(rng: np.random.Generator, rows: int, deviation: float, lag_1: float = 0.8) -> Array:
    """First-order autoregressive noise around 0 with the standard deviation given."""
    shocks = rng.normal(0.0, deviation * np.sqrt(1 - lag_1**2), rows)
    out = np.empty(rows)
    level = rng.normal(0.0, deviation)
    for i, shock in enumerate(shocks):
        level = lag_1 * level + shock
        out[i] = level
    return out


def _load(name: str, counts: Array, interval_s: float = 1.0) -> Load:
    return Load(name, np.maximum(np.rint(counts), 0.0), interval_s)


def stable(mean: float = 1000.0, noise: float = 0.05, days: float = 3, seed: int = 1) -> Load:
    """Level ``mean`` per second with autoregressive noise of ``noise`` times the mean (BGElasor,
    figure 3a; the numbers are ours).

    The paper's record has 60 days: ``days=60``.
    """
    rows = int(days * MINUTES_PER_DAY)
    return _load("stable", mean * (1 + _noise(np.random.default_rng(seed), rows, noise)))


def periodic(
    mean: float = 1500.0, swing: float = 0.75, noise: float = 0.05, days: float = 3, seed: int = 1
) -> Load:
    """A daily wave with a steeper morning than evening, between about mean*(1-swing) and
    mean*(1+swing) (BGElasor, figure 3b; the numbers are ours).
    """
    rows = int(days * MINUTES_PER_DAY)
    day = 2 * np.pi * np.arange(rows) / MINUTES_PER_DAY
    wave = (-np.cos(day) + 0.25 * np.sin(2 * day)) / 1.12
    return _load(
        "periodic",
        mean * (1 + swing * wave) * (1 + _noise(np.random.default_rng(seed), rows, noise)),
    )


def fluctuating(
    start: float = 500.0,
    growth: float = 3.0,
    bursts_per_day: float = 6.0,
    burst: float = 1.5,
    days: float = 3,
    seed: int = 1,
) -> Load:
    """Growth to ``growth`` times the start, with isolated bursts that rise at once and decay over
    some ten minutes of the day (BGElasor, figure 3c; the numbers are ours). A burst adds up to
    ``burst`` times the level of its moment.
    """
    rng = np.random.default_rng(seed)
    rows = int(days * MINUTES_PER_DAY)
    level = start * np.linspace(1.0, growth, rows) * (1 + _noise(rng, rows, 0.06))
    counts = level.copy()
    for at in rng.integers(0, rows, rng.poisson(bursts_per_day * days)):
        length = rng.uniform(10.0, 40.0)
        after = np.arange(rows - at)
        counts[at:] += level[at] * burst * rng.uniform(0.4, 1.0) * np.exp(-after / length)
    return _load("fluctuating", counts)


def steps(name: str, tuples_at_rate: tuple[tuple[int, float], ...]) -> Load:
    """So many tuples at such a rate, one after the other, in rows of one second.

    >>> steps("two", ((20, 10), (40, 20))).counts
    array([10., 10., 20., 20.])
    """
    return _load(
        name,
        np.concatenate([np.full(round(tuples / rate), rate) for tuples, rate in tuples_at_rate]),
    )


def progressive() -> Load:
    """One large rise with a plateau, then back (DABS-Storm, figure 11a; numbers from the authors'
    public code).
    """
    plan = (
        (400, 4),
        (800, 10),
        (1300, 20),
        (2500, 50),
        (5000, 200),
        (2500, 50),
        (1500, 20),
        (1000, 4),
    )
    return steps("progressive", plan)


def erratic() -> Load:
    """Sudden rises and falls (DABS-Storm, figure 11b; numbers from the authors' public code)."""
    plan = (
        (400, 4), (400, 10), (2000, 200), (2000, 20), (2000, 200), (400, 10),
        (1000, 200), (500, 4), (5000, 50), (800, 20), (500, 4),
    )  # fmt: skip
    return steps("erratic", plan)


def twitter_smoothed(seed: int = 1) -> Load:
    """1300 s: humps of 3700, 4100 and 5750/s at 2.5, 8 and 15 minutes, then 330 to 440/s from 18.5
    minutes on.

    PA-SPS, section 4.1 (read off its figure); between humps the rate falls to the tail's level.
    ``seed`` moves the tail's ripple.
    """
    rows = np.arange(1300.0)
    counts = np.full(rows.size, 385.0)
    for peak, at, half_width in (
        (3700.0, 150.0, 160.0),
        (4100.0, 480.0, 185.0),
        (5750.0, 900.0, 210.0),
    ):
        inside = np.clip((rows - at) / half_width, -1.0, 1.0)
        counts += (peak - 385.0) * np.cos(inside * np.pi / 2) ** 2
    ripple = np.clip(_noise(np.random.default_rng(seed), rows.size, 25.0, lag_1=0.95), -55.0, 55.0)
    return _load("twitter-smoothed", counts + ripple)


def _frames(name: str, changes: tuple[tuple[float, float], ...], end_min: float) -> Load:
    """Frame rates from minute to minute: (minute, frames/s) pairs."""
    minutes = np.array([m for m, _ in changes])
    rates = np.array([r for _, r in changes])
    now = np.arange(int(end_min * 60)) / 60.0
    return _load(name, rates[np.searchsorted(minutes, now, side="right") - 1])


def frame_rate_long(base: float = 6.0) -> Load:
    """DRS, figure 9a: the frame rate doubles at minute 6, falls back at 21, triples at 34; 45
    minutes.
    """
    return _frames("frame-rate-long", ((0, base), (6, 2 * base), (21, base), (34, 3 * base)), 45)


def frame_rate_short(base: float = 6.0) -> Load:
    """DRS, figure 9b: it doubles from minute 6 to 9; then a second short rise (ours: triples from
    21 to 24); 36 minutes.
    """
    return _frames(
        "frame-rate-short", ((0, base), (6, 2 * base), (9, base), (21, 3 * base), (24, base)), 36
    )


def ticks(mean: float = 100.0, bursts: int = 25, rows: int = 7000, seed: int = 1) -> Load:
    """A trading session: four times as busy at the open and three times at the close as at noon,
    with short bursts and strong noise (FUGU, figure 3: a working day of the Frankfurt stock
    exchange in about 700 measurement points; the numbers are ours).
    """
    rng = np.random.default_rng(seed)
    day = np.linspace(0.0, 1.0, rows)
    shape = 1.0 + 3.0 * np.exp(-day / 0.08) + 2.0 * np.exp(-(1 - day) / 0.08)
    shape *= np.exp(_noise(rng, rows, 0.15, lag_1=0.97))
    for at in rng.integers(0, rows, bursts):
        after = np.arange(rows - at)
        shape[at:] += rng.uniform(0.5, 2.5) * np.exp(-after / rng.uniform(10.0, 60.0))
    return _load("ticks", rng.poisson(mean * shape / shape.mean()).astype(float))
