"""What a load that repeats will be when capacity asked for now works, by its earlier seasons.

A burst that comes by the clock is met before it comes, and what it needs is given back when it is
over; an average of the load sees it when it is there. Whether the seasons are worth following is
for the replay to say (``promise.rehearsal``). Pure arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretide.model import Array
from foretide.series import period

SEASONS = 3
"""Seasons that are looked back on."""
NEAR = 2
"""Windows by which a burst may come sooner or later than a season ago."""
CLEARLY = 0.6
"""The part of what the load itself leaves open that a season may leave open at most. Bursts by the
clock leave 0 to 0.55, what recorded loads without a season seem to have mostly 0.7 and more.
"""
ROWS = 4


def repeating(load: Array, lead: int, last: int | None = None) -> int | None:
    """Windows per season of a load; None where it does not repeat, or did so too seldom so far.

    The first two thirds must have had the same season, or a multiple of it: few bursts that come
    by chance always have a distance at which some of them seem to repeat. And the last third must
    bear it out. The second try keeps the highest 1 %, which short and rare bursts consist of. The
    season found ``last`` stays while it is borne out and no other is found.

    >>> bursts = np.tile([1.0, 1, 1, 9, 1, 1, 1, 1, 1, 1], 20)
    >>> repeating(bursts, lead=2)
    10
    >>> repeating(np.concatenate([np.ones(150), bursts[:50]]), lead=2) is None
    True
    """
    earlier = load[: 2 * len(load) // 3]
    for below in (0.99, 1.0):
        season, before = period(load, below=below), period(earlier, below=below)
        if season and before and _multiples(season, before) and _borne_out(load, lead, season):
            return season
    return last if last and _borne_out(load, lead, last) else None


def _borne_out(load: Array, lead: int, season: int) -> bool:
    """Whether the season tells clearly more of the last third of what was measured than the load of
    a lead time before: what the correlation with it leaves open.
    """
    by = lead + 1
    before, foretold, came = load[:-by], recurring(load, lead, season)[0, :-by], load[by:]
    known = np.flatnonzero(np.isfinite(before) & np.isfinite(foretold) & np.isfinite(came))
    known = known[2 * len(known) // 3 :]
    open_before, open_now = (1.0 - _related(r[known], came[known]) for r in (before, foretold))
    return open_now < CLEARLY * open_before


def _related(a: Array, b: Array) -> float:
    """The correlation of two series; 0 where one of them never changes."""
    if len(a) < 2 or not np.ptp(a) > 0 or not np.ptp(b) > 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _multiples(a: int, b: int) -> bool:
    """Whether one is up to seven times the other, as a week is of a day.

    >>> _multiples(60, 121), _multiples(60, 75), _multiples(48, 336)
    (True, False, True)
    """
    most, least = max(a, b), min(a, b)
    times = round(most / least)
    return times <= 7 and abs(most - times * least) <= max(NEAR, 0.03 * min(most, 3 * least))


def recurring(load: Array, lead: int, season: int) -> Array:
    """What was seen one to three seasons before the window in which capacity asked for now works:
    its mean, its highest, the highest within ``NEAR`` windows of it, and the higher of that and the
    load of now. A window that was not measured held what it held a season before; NaN where none
    was. Every column comes from the windows up to it alone, but for the first season, which is
    foretold from the next: the replay would take rules for bad that could not know it yet.

    >>> load = np.tile([1.0, 1, 1, 9, 1, 1, 1, 1, 1, 1], 20)
    >>> recurring(load, 2, 10)[0, 100:110]  # three windows before it comes
    array([9., 1., 1., 1., 1., 1., 1., 1., 1., 1.])
    """
    ahead, first = np.arange(len(load)) + lead + 1, _first(season, lead)
    nearby = range(-NEAR, NEAR + 1)
    past = _carried(load, season)
    seen = [[_at(past, ahead + d - first - k * season) for d in nearby] for k in range(SEASONS)]
    later = [_at(load, np.where(ahead < first, ahead + d + season, -1)) for d in nearby]
    around = np.array([*seen, later])
    there = around[:, NEAR]
    known = np.isfinite(there)
    count = known.sum(axis=0)
    total = np.where(known, there, 0.0).sum(axis=0)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    widest = np.fmax.reduce(around.reshape(-1, len(load)), axis=0)
    return np.array([mean, np.fmax.reduce(there, axis=0), widest, np.fmax(widest, load)])


def _first(season: int, lead: int) -> int:
    """Windows back to the latest season of which all that is looked at was seen.

    >>> _first(10, lead=2), _first(10, lead=9)
    (10, 20)
    """
    return season * -(-(lead + 1 + NEAR) // season)


def _carried(load: Array, season: int) -> Array:
    """The load with holes that hold what was seen in the latest season before.

    >>> _carried(np.array([1.0, 2, np.nan, np.nan, 5, np.nan]), 2)
    array([1., 2., 1., 2., 5., 2.])
    """
    seasons = -(-len(load) // season)
    padded = np.append(load, np.full(seasons * season - len(load), np.nan))
    table = padded.reshape(seasons, season)
    seen = np.where(np.isfinite(table), np.arange(seasons)[:, None], 0)
    latest = np.maximum.accumulate(seen, axis=0)
    return np.asarray(np.take_along_axis(table, latest, axis=0).ravel()[: len(load)])


def _at(load: Array, places: Any) -> Array:
    return np.append(load, np.nan)[np.where((places >= 0) & (places < len(load)), places, -1)]
