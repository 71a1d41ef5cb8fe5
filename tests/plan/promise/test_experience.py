"""What the load so far teaches: from which window on, across holes, and against its forecasts."""

import math

import numpy as np
import pytest

from foretide.history import History
from foretide.model import Sample, Snapshot
from foretide.plan.foretide import Foretide
from foretide.plan.promise.due import evened
from foretide.plan.promise.experience import ENOUGH, Experience, Horizon
from foretide.topology import Operator, Topology

ONE = Topology((Operator("a"),))


def experience() -> Experience:
    return Experience(Foretide().terms)


def follow(
    rates: list[float], lead: int = 2, foreseen: float | None = None
) -> tuple[list[float | None], Experience, History]:
    """What is asked for after each window of 5 s; NaN is a window that was not measured."""
    learned, history, asked = experience(), History(ONE), []
    for i, rate in enumerate(rates):
        if math.isnan(rate):
            continue
        count = 5.0 * rate
        sample = Sample(count, count, 0.0, 5, busy_s=0.04 * count, offered=count)
        history.append(Snapshot(5.0 * (i + 1), 5.0, {"a": sample}, lead_s=5.0 * lead))
        horizon = Horizon(lead, 0.8, 0.04, rate if foreseen is None else foreseen)
        asked.append(learned.rate(history, horizon, level=1.0))
    return asked, learned, history


@pytest.mark.parametrize("lead", [0, 2, 12])
def test_rules_decide_when_enough_windows_beyond_the_lead_time_were_seen(lead: int) -> None:
    asked, _, _ = follow([100.0] * (ENOUGH + lead + 3), lead)
    assert [a is None for a in asked] == [True] * (ENOUGH + lead - 1) + [False] * 4
    assert all(100.0 <= a < 130.0 for a in asked if a is not None)


def test_a_window_that_was_not_measured_is_no_window_without_load() -> None:
    whole = [100.0 + i % 7 for i in range(60)]
    holed = [math.nan if i in (20, 45, 58) else rate for i, rate in enumerate(whole)]
    asked = follow(holed)[0][-1]
    assert asked is not None
    assert asked == pytest.approx(follow(whole)[0][-1], rel=0.05)


def test_after_a_restart_rules_decide_at_once_and_the_time_between_teaches_nothing() -> None:
    """A noisy load, three hours without a run, then the first window of the next one."""
    noisy = np.random.default_rng(3).gamma(4.0, 25.0, 200)
    asked, _, history = follow(list(noisy))
    again, restarted = experience(), History(ONE)
    restarted.restore(history.state(1_000), now=5.0 * 200 + 3 * 3600.0, window_s=5.0)
    sample = Sample(500.0, 500.0, 0.0, 5, busy_s=20.0, offered=500.0)
    restarted.append(Snapshot(restarted.now + 5.0, 5.0, {"a": sample}, lead_s=10.0))
    rate = again.rate(restarted, Horizon(2, 0.8, 0.04, 100.0), level=1.0)
    assert rate is not None
    assert asked[-1] is not None
    assert rate == pytest.approx(asked[-1], rel=0.25)


def test_a_clock_that_is_set_back_leaves_no_forecasts_of_windows_to_come() -> None:
    _, learned, history = follow([100.0] * 60)
    sample = Sample(500.0, 500.0, 0.0, 5, busy_s=20.0, offered=500.0)
    earlier = History(ONE)
    for i in range(60):
        earlier.append(Snapshot(5.0 * (i + 1) - 60.0, 5.0, {"a": sample}, lead_s=10.0))
    assert history.now > earlier.now
    assert learned.rate(earlier, Horizon(2, 0.8, 0.04, 100.0), level=1.0) is not None


def test_a_burst_that_comes_by_the_clock_is_asked_for_a_lead_time_before() -> None:
    """50 s of 400 events/s in every 200 s. With two windows of lead time, what is asked for in the
    last window before the burst works in its third; asked for three windows before, in its first.
    """
    load = [400.0 if i % 40 < 10 else 100.0 for i in range(360)]
    asked = np.array(follow(load)[0][-80:], dtype=float).reshape(2, 40)
    before = 40 - 3
    assert (asked[:, before:] >= 390.0).all()
    assert (asked[:, 11 : before - 3] <= 130.0).all()


def test_after_a_restart_the_season_keeps_its_place() -> None:
    """Three seasons and a half later, in the middle of a pause of the bursts. What was asked for in
    the last windows before the stop, for a burst, is held for as long as the rules hold things.
    """
    load = [400.0 if i % 40 < 10 else 100.0 for i in range(360)]
    *_, history = follow(load)
    again, restarted, asked = experience(), History(ONE), []
    restarted.restore(history.state(1_000), now=5.0 * 500, window_s=5.0)
    for i in range(500, 520):
        count = 5.0 * (400.0 if i % 40 < 10 else 100.0)
        sample = Sample(count, count, 0.0, 5, busy_s=0.04 * count, offered=count)
        restarted.append(Snapshot(5.0 * (i + 1), 5.0, {"a": sample}, lead_s=10.0))
        asked.append(again.rate(restarted, Horizon(2, 0.8, 0.04, count / 5.0), level=1.0))
    first = 520 - 500 - 3
    assert all(a is not None and a >= 390.0 for a in asked[first:])
    assert all(a is not None and a <= 130.0 for a in asked[3 : first - 3])


def test_without_lead_time_more_of_the_delay_is_used_when_nothing_is_late() -> None:
    assert 0.7 < evened(0.8, level=0.0) < 0.8
    assert evened(0.8, level=1.0) < evened(0.8, level=0.5) < 0.75
    assert 0.0 < evened(0.8, level=9.0) < evened(0.8, level=1.25) < evened(0.8, level=1.0)


def test_a_surprise_is_how_far_the_load_rose_above_what_was_foreseen() -> None:
    _, learned, history = follow([100.0] * 12 + [150.0] * 3, lead=0, foreseen=100.0)
    assert learned.surprise(history, lead=0) == pytest.approx(1.5)
    _, learned, history = follow([100.0] * 3, lead=0)
    assert learned.surprise(history, lead=0) is None, "too few forecasts met their windows"
