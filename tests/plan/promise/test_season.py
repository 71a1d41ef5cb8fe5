"""A load that repeats: when its season is found, what it foretells, and what it may not know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.model import Array
from foretide.plan.promise.season import NEAR, ROWS, SEASONS, recurring, repeating


def bursts(rows: int, season: int, width: int = 3, high: float = 5.0, seed: int = 0) -> Array:
    """Bursts by the clock on a load with some noise."""
    rates = np.where(np.arange(rows) % season < width, high, 1.0)
    return np.asarray(rates * np.random.default_rng(seed).normal(1.0, 0.05, rows))


def looked_up(load: Array, lead: int, season: int, t: int) -> list[float]:
    """The same for one window, one value at a time."""
    first = season
    while first < lead + 1 + NEAR:
        first += season

    def held(i: int) -> float:
        while 0 <= i < len(load) and np.isnan(load[i]):
            i -= season
        return float(load[i]) if 0 <= i < len(load) else np.nan

    at, nearby = t + lead + 1, range(-NEAR, NEAR + 1)
    seen = [[held(at + d - first - k * season) for d in nearby] for k in range(SEASONS)]
    if at < first:
        later = [at + d + season for d in nearby]
        seen.append([load[i] if 0 <= i < len(load) else np.nan for i in later])
    there = [row[NEAR] for row in seen if np.isfinite(row[NEAR])]
    around = [v for row in seen for v in row if np.isfinite(v)]
    widest = max(around, default=np.nan)
    now = [v for v in (widest, load[t]) if np.isfinite(v)]
    mean = sum(there) / len(there) if there else np.nan
    return [mean, max(there, default=np.nan), widest, max(now, default=np.nan)]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 60),
    lead=st.integers(0, 14),
    season=st.integers(2, 25),
)
def test_what_earlier_seasons_foretell_is_looked_up_right(
    seed: int, rows: int, lead: int, season: int
) -> None:
    random = np.random.default_rng(seed)
    load = np.where(random.random(rows) < 0.2, np.nan, random.gamma(2.0, 1.0, rows))
    found = recurring(load, lead, season)
    assert found.shape == (ROWS, rows)
    each = np.array([looked_up(load, lead, season, t) for t in range(rows)]).T
    np.testing.assert_allclose(found, each)


@pytest.mark.parametrize("lead", [0, 2, 12, 70])
def test_after_the_first_season_nothing_comes_from_windows_that_are_still_to_come(
    lead: int,
) -> None:
    load, known = bursts(400, 60), 260
    other = load.copy()
    other[known:] = 99.0
    before, after = recurring(load, lead, 60), recurring(other, lead, 60)
    np.testing.assert_array_equal(before[:, 150:known], after[:, 150:known])


@pytest.mark.parametrize("lead", [0, 2, 12])
@pytest.mark.parametrize(("season", "width"), [(24, 2), (60, 3), (120, 1), (360, 2), (240, 120)])
def test_bursts_by_the_clock_are_found_also_short_and_rare_ones(
    season: int, width: int, lead: int
) -> None:
    assert repeating(bursts(4 * season, season, width), lead) == pytest.approx(season, abs=1)


@pytest.mark.parametrize("lead", [2, 12])
def test_windows_that_were_not_measured_do_not_shift_the_season(lead: int) -> None:
    load = bursts(600, 60)
    load[250:300] = load[10] = np.nan
    assert repeating(load, lead) == 60
    coming = np.flatnonzero(recurring(load, lead, 60)[0] > 3.0)
    assert {(t + lead + 1) % 60 for t in coming if t > 200} == {0, 1, 2}


@pytest.mark.parametrize("stopped", [37, 200, 2000])
def test_a_season_outlasts_a_stop_and_keeps_its_place(stopped: int) -> None:
    load = bursts(600 + stopped, 60)
    load[500 : 500 + stopped] = np.nan
    assert repeating(load, lead=2) == 60
    coming = np.flatnonzero(recurring(load, 2, 60)[0] > 3.0)
    assert {(t + 3) % 60 for t in coming if t > 500 + stopped} == {0, 1, 2}


def by_chance(kind: str, seed: int) -> Array:
    random = np.random.default_rng(seed)
    if kind == "noise":
        return random.gamma(9.0, 1.0, 900)
    if kind == "bursts":
        starts = random.random(900) < 1.0 / 60.0
        return np.convolve(starts, np.full(5, 4.0))[:900] + 1.0
    steps = random.normal(0.0, 0.05, 900)
    return np.asarray(np.exp(np.convolve(steps, 0.98 ** np.arange(900))[:900]))


@pytest.mark.parametrize("kind", ["noise", "bursts", "drift"])
def test_what_comes_by_chance_seldom_passes_for_a_season(kind: str) -> None:
    """What is left is for the replay to judge."""
    found = [repeating(by_chance(kind, seed), lead=12) for seed in range(40)]
    assert sum(f is not None for f in found) <= 2


@pytest.mark.parametrize(
    "load", [np.full(300, 3.0), np.zeros(300), np.full(300, np.nan), np.ones(3), np.empty(0)]
)
def test_a_load_without_change_has_no_season(load: Array) -> None:
    assert repeating(load, lead=2) is None
