"""Running totals against the formulas they stand for, and what a run may claim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.figures.account import Account, Promise
from foretide.figures.demand import WindowArrays
from foretide.figures.saving import saving
from foretide.model import Array, Latency, Prices, Sample
from foretide.plan.optimum import schedule_cost
from foretide.topology import Operator, Topology

SCHEDULES = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=1, max_size=30)
)


def operators(n: int, most: int = 64) -> Topology:
    return Topology(tuple(Operator(f"o{i}", max_replicas=most) for i in range(n)))


def window(replicas: list[int], seconds: float = 30.0) -> WindowArrays:
    n, ones = len(replicas), np.ones(len(replicas))
    counts = np.array(replicas, dtype=float)
    return WindowArrays(seconds, ones, ones, 0 * ones, counts, ones, ones, np.zeros(0), 0.0 * n)


@settings(deadline=None, max_examples=80)
@given(SCHEDULES, st.builds(Prices, *(st.floats(0, 1e4) for _ in range(4))))
def test_paid_is_the_schedule_cost_of_all_operators(
    schedule: list[list[int]], prices: Prices
) -> None:
    account = Account(operators(len(schedule[0])), prices, Promise())
    for row in schedule:
        account.add(window(row), np.array(row, dtype=float))
    columns, per_window = np.array(schedule).T, prices.per_window(30.0)

    def total(cost_of: list[Array]) -> float:
        return sum(schedule_cost(c, per_window, int(c[0])) for c in cost_of)

    np.testing.assert_allclose(account.paid, total(list(columns)), rtol=1e-9, atol=1e-6)
    constant = [np.full(len(c), c.max()) for c in columns]
    assert account.static_peak is not None
    np.testing.assert_allclose(account.static_peak, total(constant), rtol=1e-9, atol=1e-6)


def test_static_peak_is_unknown_until_every_need_was_known_once() -> None:
    account = Account(operators(2), Prices(), Promise())
    account.add(window([1, 1]), np.array([2.0, np.nan]))
    assert (account.peak, account.static_peak) == (None, None)
    assert (account.saved_cost, account.saved_replica_time) == (None, None)
    account.add(window([1, 1]), np.array([1.0, 3.0]))
    assert account.peak == 5


def test_the_baseline_never_runs_more_than_the_maximum_but_the_need_is_not_cut() -> None:
    account = Account(operators(1, most=12), Prices(), Promise())
    account.add(window([12]), np.array([13.0]))
    assert account.peak == 12
    assert account.need_share == pytest.approx(12 / 13)


def test_what_ran_above_the_need_does_not_make_up_for_another_window() -> None:
    account = Account(operators(1), Prices(), Promise())
    for replicas in (1, 5):
        account.add(window([replicas]), np.array([3.0]))
    assert account.need_share == pytest.approx(4 / 6)
    assert saving(account, None).short == "replicas covered 66.6 % of the need"


def test_what_waited_before_the_first_window_is_due_too() -> None:
    """1,000 events wait; 10 come and 50 are worked off in each window."""
    account = Account(operators(1), Prices(), Promise(target_s=30.0))
    one = np.ones(1)
    for left in (960.0, 920.0, 880.0):
        counts = (10 * one, 50 * one, left * one, one, one, 10 * one, np.zeros(0))
        account.add(WindowArrays(30.0, *counts, dropped=0.0), one)
    assert account.due == 1000 + 20
    assert account.overdue == 870, "all that waits but the ten events of the last window"
    assert "870 events still waiting at the end" in (saving(account, None).short or "")


def test_what_came_while_nothing_was_measured_is_due_too() -> None:
    """A restart: nothing waited when the first run ended, 400 events when the second one began."""
    account = Account(operators(1), Prices(), Promise(target_s=30.0))
    one = np.ones(1)
    for processed, left in ((10.0, 0.0), (10.0, 0.0), (50.0, 360.0), (50.0, 320.0)):
        counts = (10 * one, processed * one, left * one, one, one, 10 * one, np.zeros(0))
        account.add(WindowArrays(30.0, *counts, dropped=0.0), one)
    assert account.overdue == 310, "all that waits but the ten events of the last window"


def test_a_backlog_that_is_estimated_may_wobble() -> None:
    account = Account(operators(1), Prices(), Promise(target_s=30.0))
    one = np.ones(1)
    for left in (5.0, 25.0, 5.0, 25.0, 5.0):
        counts = (10 * one, 10 * one, left * one, one, one, 10 * one, np.zeros(0))
        account.add(WindowArrays(30.0, *counts, dropped=0.0), one)
    assert account.overdue == 0


CHAIN = Topology((Operator("a"), Operator("b", inputs=("a",))))


def chained(offered: float, out: float, dropped: float = 0.0) -> WindowArrays:
    """Half of what a processes goes on to b; a processes everything at once."""
    samples = {
        "a": Sample(offered, offered, 0, 1, {"b": offered / 2}, busy_s=1.0, offered=offered),
        "b": Sample(offered / 2, out, 0, 1, busy_s=1.0, dropped=dropped),
    }
    return WindowArrays.of(CHAIN, 10.0, samples)


def test_events_that_never_left_missed_the_target() -> None:
    account = Account(CHAIN, Prices(), Promise(15.0, 0.9))
    for out in (50, 50, 10, 0):
        left = Latency(out, 1, 1, 1, 1, within=out) if out else None
        account.add(chained(100, out), np.ones(2), left)
    # 150 of the 200 that enter b's branch came more than 15 s ago, 110 left, all of them in time
    assert account.due == 100
    assert account.overdue == 0
    account.add(chained(0, 0), np.ones(2))
    account.add(chained(0, 0), np.ones(2))
    assert (account.due, account.overdue) == (200, 90)
    assert account.slo_share() == pytest.approx(110 / 200)
    assert saving(account, account.slo_share()).short == (
        "55 % of events within 15 s, not 90 %; 90 events still waiting at the end"
    )


def test_dropped_events_missed_the_target_once() -> None:
    account = Account(CHAIN, Prices(), Promise(5.0))
    account.add(chained(100, 40, dropped=10), np.ones(2), Latency(40, 1, 1, 1, 1, within=40))
    account.add(chained(0, 0), np.ones(2))
    assert account.overdue == 0
    assert account.slo_share() == pytest.approx(40 / 50)


def test_without_a_target_there_is_no_share_but_waiting_events_are_told() -> None:
    account = Account(CHAIN, Prices(), Promise())
    for _ in range(4):
        account.add(chained(100, 0), np.ones(2))
    assert account.slo_share() is None
    assert saving(account, None).short == "100 events still waiting at the end"


def test_a_run_that_served_its_load_shows_what_it_saved() -> None:
    account = Account(operators(1), Prices(), Promise())
    for replicas, need in ((1, 1), (4, 4), (1, 1), (2, 1)):
        account.add(window([replicas]), np.array([float(need)]))
    found = saving(account, None)
    assert found.replica_time == pytest.approx(0.5)
    changes = 3 * 5000 + 3 * 5000 + 5000 + 3 * 100  # 1 -> 4 -> 1 -> 2
    window_s = account.seconds / 4
    paid = 8 * window_s * Prices().replica_second + changes
    assert found.share == pytest.approx(1 - paid / (16 * window_s * Prices().replica_second))
    assert found.short is None
