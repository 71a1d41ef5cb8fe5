"""Rules replayed on a load: against a replay in plain Python, and on loads with a known answer."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.plan.promise.rehearsal import MARGINS, Rule, Setting, averages, rehearse, replayed


def late_share(work: np.ndarray, rule: Rule, rows: np.ndarray, setting: Setting) -> float:
    """The rule without its answer to a backlog, written plainly: a request works ``lead`` windows
    later if nothing less was asked for meanwhile.
    """
    lead, first = setting.lead, max(1, math.ceil(work[: setting.lead + 1].max() - 1e-9))
    asked = [first] * (lead + 1)
    active = []
    for t in range(len(work)):
        active.append(min(asked[-lead - 1 :]))
        asked.append(max(1, math.ceil(rule.rate(rows[:, : t + 1], lead) - 1e-9)))
    return late_in_order(work, active, setting.delay)


def late_in_order(
    work: np.ndarray, active: Sequence[float], delay: float, parts: int = 200
) -> float:
    """The share that is not done in time, part by part of every window: first in, first out."""
    came = np.repeat(work / parts, parts)
    could = np.concatenate([np.repeat(active, parts) / parts, np.zeros(3 * parts)])
    done = np.zeros(len(could))
    queue = 0.0
    for i, capacity in enumerate(could):
        queue += came[i] if i < len(came) else 0.0
        done[i] = min(queue, capacity)
        queue -= done[i]
    finished = np.cumsum(done)
    due = np.minimum(np.arange(len(came)) + round(delay * parts), len(could) - 1)
    late = np.cumsum(came) > finished[due] + 1e-9
    return float(came[late & (due < len(came))].sum() / work.sum())


def noisy(windows: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).gamma(4.0, 2.0, windows)


def test_every_average_is_of_the_windows_before_alone() -> None:
    load = noisy(40)
    whole = averages(load, lead=3)
    np.testing.assert_allclose(whole[:, :25], averages(load[:25], lead=3))


def test_forecasts_of_its_own_are_a_row_and_holes_in_them_are_the_load() -> None:
    own = np.array([np.nan, 7.0])
    assert averages(np.array([2.0, 4.0]), 0, own)[-1].tolist() == [2.0, 7.0]


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_a_load_that_comes_back_after_a_low_costs_less_with_its_usual_level(seed: int) -> None:
    """Minutes that differ by chance: the first eleven rows are averages and trends alone."""
    minutes = np.maximum(1.0, np.random.default_rng(seed).normal(8.0, 2.5, 120))
    load, lead = np.repeat(minutes, 12), 12
    rows, setting = averages(load, lead), Setting(lead, 0.8, 0.02, 3.75)
    cost, late = [], []
    for known in (rows, rows[:11]):
        rule = rehearse(load, known, setting, 5.0)
        paid, missed = replayed(load, known[rule.member], rule.hold, rule.margin, setting)
        cost.append(paid)
        late.append(missed)
    assert cost[0] < 0.985 * cost[1]
    assert max(late) <= setting.allowed


@pytest.mark.parametrize("lead", [0, 2, 12])
def test_a_load_that_stays_needs_no_margin_at_any_lead_time(lead: int) -> None:
    load = np.full(120, 7.5)
    rule = rehearse(load, averages(load, lead), Setting(lead, 0.8, 0.01, 3.75), 5.0)
    assert math.ceil(rule.rate(averages(load, lead), lead)) == 8


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), lead=st.sampled_from([2, 6]))
def test_the_rule_would_have_kept_the_promise_where_a_margin_can(seed: int, lead: int) -> None:
    """Its answer to a backlog is left out here, which can only be later."""
    load = 8.0 + noisy(300, seed) / 8.0
    rows, setting = averages(load, lead), Setting(lead, 0.8, 0.01, 3.75)
    rule = rehearse(load, rows, setting, 5.0)
    assert rule.margin in MARGINS
    assert late_share(load, rule, rows, setting) <= 0.05


@pytest.mark.parametrize("limit", [0.4, 0.8, 1.0, 1.3, 2.6])
def test_work_is_late_when_it_is_not_done_in_time_whatever_ran_when_it_came(limit: float) -> None:
    """A rule that asks for what comes, seven replicas at least, against the same in small parts."""
    work = noisy(60)
    row = np.full(60, 7.0)
    setting = Setting(0, 0.0, 0.01, 3.75, limit=limit)
    cost, late = replayed(work, row, 0, 1.0, setting)
    # without a delay the backlog and all that is expected are due in the next window
    active, queue = [math.ceil(work[0])], 0.0
    for came in work:
        queue = max(0.0, queue + came - active[-1])
        active.append(math.ceil(queue + 7.0 - 1e-9))
    assert late == pytest.approx(late_in_order(work, active[:-1], limit), abs=0.004)
    changes = np.abs(np.diff(active[:-1])).sum()
    assert cost == pytest.approx(sum(active[:-1]) + 3.75 * changes)


def test_a_stricter_allowance_never_asks_for_less() -> None:
    load, lead = noisy(400), 6
    rows = averages(load, lead)
    asked = [
        np.mean(
            [
                rehearse(load, rows, Setting(lead, 0.8, late, 3.75), 5.0).rate(rows[:, :t], lead)
                for t in range(100, 400, 50)
            ]
        )
        for late in (0.1, 0.01, 0.001)
    ]
    assert asked[0] <= asked[1] * 1.05 <= asked[2] * 1.1
