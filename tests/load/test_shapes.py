"""What the papers say of their loads, checked on ours."""

import numpy as np

from foretide.load import load


def test_dabs_storm_streams_hold_the_published_tuples() -> None:
    progressive, erratic = load("progressive"), load("erratic")
    assert progressive.total == erratic.total == 15_000
    assert progressive.peak == erratic.peak == 200
    assert progressive.counts[:100].tolist() == [4] * 100
    assert np.count_nonzero(progressive.counts == 200) == 25
    assert np.count_nonzero(erratic.counts == 200) == 25


def test_twitter_smoothed_has_three_humps_and_a_quiet_tail() -> None:
    counts = load("twitter-smoothed").counts
    assert counts.size == 1300
    for at, peak in ((150, 3700), (480, 4100), (900, 5750)):
        hump = counts[at - 60 : at + 60]
        assert abs(hump.max() - peak) < 0.02 * peak
        assert abs(at - (at - 60 + int(hump.argmax()))) < 20
    assert counts[1110:].min() >= 330
    assert counts[1110:].max() <= 440


def test_frame_rates_step_at_the_published_minutes() -> None:
    long, short = load("frame-rate-long").counts, load("frame-rate-short").counts
    assert [long[m * 60] for m in (0, 6, 20, 21, 33, 34)] == [6, 12, 12, 6, 6, 18]
    assert [short[m * 60] for m in (5, 6, 8, 9)] == [6, 12, 12, 6]


def test_days_repeat_and_bursts_stand_out() -> None:
    days = load("periodic:days=4,noise=0").counts.reshape(4, -1)
    assert np.array_equal(days[0], days[3])
    assert days[0].max() > 5 * days[0].min()
    stable = load("stable").counts
    assert 0.03 < stable.std() / stable.mean() < 0.07
    fluctuating = load("fluctuating").counts
    assert np.diff(fluctuating).max() > 0.3 * fluctuating.mean()
    assert fluctuating[-1000:].mean() > 1.8 * fluctuating[:1000].mean()


def test_a_trading_session_is_u_shaped() -> None:
    counts = load("ticks").counts
    open_, noon, close = (
        float(np.median(part)) for part in (counts[:200], counts[2000:5000], counts[-200:])
    )
    assert open_ > 2 * noon
    assert close > 1.5 * noon
