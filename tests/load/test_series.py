import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.errors import InvalidConfig
from foretide.load import LOADS, Load, load

TRACES = Path(os.environ.get("FORETIDE_TRACES", Path(__file__).parents[2] / "shared" / "traces"))


def test_windows_average_the_rate_and_keep_the_events() -> None:
    steps = Load("steps", np.array([10.0, 20.0, 30.0, 40.0]), interval_s=2.0)
    assert steps.rates().tolist() == [5, 10, 15, 20]
    assert steps.rates(4.0).tolist() == [7.5, 17.5]
    assert steps.rates(1.0).tolist() == [5, 5, 10, 10, 15, 15, 20, 20]
    assert steps.rates(3.0).tolist() == [pytest.approx(20 / 3), pytest.approx(40 / 3)]
    assert (steps.duration_s, steps.total, steps.peak) == (8.0, 100.0, 20.0)
    assert [steps.at(t) for t in (-1, 0, 1.9, 2, 7.9, 8)] == [0, 5, 5, 10, 20, 0]


def test_speed_is_rows_per_second_and_scale_a_factor_on_the_counts() -> None:
    minutes = Load("minutes", np.array([60.0, 120.0]), interval_s=60.0)
    assert minutes.rates().tolist() == [1, 2]
    fast = minutes.scaled(scale=0.5, speed=2.0)
    assert fast.interval_s == 0.5
    assert fast.rates().tolist() == [60, 120]
    assert minutes.first(60.0).counts.tolist() == [60]
    assert minutes.first(1e9).counts.tolist() == [60, 120]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0.001, 10))
def test_whole_counts_never_lose_an_event(counts: list[float], scale: float) -> None:
    scaled = Load("any", np.array(counts)).scaled(scale)
    whole = scaled.whole_counts()
    assert np.all(whole == np.rint(whole))
    assert np.all(np.abs(np.cumsum(whole) - np.cumsum(scaled.counts)) < 1)


@pytest.mark.parametrize("name", LOADS.names)
def test_every_shape_is_whole_seeded_and_named(name: str) -> None:
    first, again = load(name), load(name)
    assert np.array_equal(first.counts, again.counts)
    assert np.all(first.counts == np.rint(first.counts))
    assert first.name == name
    with pytest.raises(ValueError, match="read-only"):
        first.counts[0] = 1


def test_parameters_go_into_the_name() -> None:
    assert len(load("periodic:days=2")) == 2880
    assert load("ticks:mean=10,rows=100,seed=7").counts.size == 100
    assert not np.array_equal(load("stable:seed=2").counts, load("stable").counts)
    with pytest.raises(
        InvalidConfig, match="has no constant 'dayz'; it takes: mean, noise, days, seed"
    ):
        load("stable:dayz=2")
    with pytest.raises(InvalidConfig, match="'days' is not one"):
        load("stable:days")
    with pytest.raises(InvalidConfig, match=r"seed must be a whole number, it is 1\.5"):
        load("stable:seed=1.5")
    with pytest.raises(InvalidConfig, match="mean must be >= 0"):
        load("stable:mean=-5")
    with pytest.raises(InvalidConfig, match="cannot be made"):
        load("ticks:rows=1e18")


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(InvalidConfig, match="did you mean 'periodic'"):
        load("perodic")


@pytest.mark.parametrize(
    "bad", [{"scale": 0.0}, {"scale": float("nan")}, {"speed": 0.0}, {"speed": -1.0}]
)
def test_speed_and_scale_are_checked(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidConfig, match="must be > 0"):
        load("progressive", **bad)


def test_impossible_loads_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="no rows"):
        Load("none", np.array([]))
    with pytest.raises(InvalidConfig, match="row 2: count nan"):
        Load("nan", np.array([1.0, np.nan]))
    with pytest.raises(InvalidConfig, match="interval 0"):
        Load("no time", np.array([1.0]), 0.0)


@pytest.mark.skipif(not TRACES.is_dir(), reason=f"no recorded traces in {TRACES}")
def test_the_recorded_traces_read() -> None:
    worldcup = load(TRACES / "worldcup98_http_1min.csv")
    assert (len(worldcup), worldcup.interval_s) == (125_310, 60.0)
    assert worldcup.peak == pytest.approx(3824, rel=0.01)
    assert worldcup.total / worldcup.duration_s == pytest.approx(180, rel=0.01)
