"""Rules replayed on a load: against a replay in plain Python, and on loads with a known answer."""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.plan.promise import rehearsal
from foretide.plan.promise.rehearsal import (
    LATE_PRICE,
    MARGINS,
    Rules,
    Setting,
    averages,
    holds_of,
    rehearse,
    replayed,
    weights,
)


def late_share(work: np.ndarray, rules: Rules, rows: np.ndarray, setting: Setting) -> float:
    """The rules without their answer to a backlog, written plainly: a request works ``lead``
    windows later if nothing less was asked for meanwhile.
    """
    lead, first = setting.lead, max(1, math.ceil(work[: setting.lead + 1].max() - 1e-9))
    asked = [first] * (lead + 1)
    active = []
    for t in range(len(work)):
        active.append(min(asked[-lead - 1 :]))
        asked.append(max(1, math.ceil(rules.rate(rows[:, : t + 1]) - 1e-9)))
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


def outcome(
    work: np.ndarray, rules: Rules, rows: np.ndarray, setting: Setting, since: int = 0
) -> tuple[float, float]:
    """Replica-windows that the rules cost from a window on, and the share that is late. What they
    ask for holds what it holds already, so that nothing is added to their lead time.
    """
    asked = [rules.rate(rows[:, : t + 1]) for t in range(since, len(work))]
    return replayed(work[since:], np.array(asked), 0, 1.0, setting)


def price(load: np.ndarray, rows: np.ndarray, setting: Setting, known: int) -> float:
    """What rules learned on the ``known`` first windows cost on the others (on all where none are
    left), lateness beyond the allowance included, per work.
    """
    rules, since = rehearse(load[:known], rows[:, :known], setting, 5.0), known % len(load)
    cost, late = outcome(load, rules, rows, setting, since)
    return cost / float(load[since:].sum()) + LATE_PRICE * max(0.0, late - setting.allowed)


def noisy(windows: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).gamma(4.0, 2.0, windows)


def test_every_average_is_of_the_windows_before_alone() -> None:
    load = noisy(40)
    whole = averages(load, lead=3)
    np.testing.assert_allclose(whole[:, :25], averages(load[:25], lead=3))


def test_forecasts_of_its_own_are_a_row_and_holes_in_them_are_the_load() -> None:
    own = np.array([np.nan, 7.0])
    assert averages(np.array([2.0, 4.0]), 0, own)[-1].tolist() == [2.0, 7.0]


def test_a_load_that_comes_back_after_a_low_costs_less_with_its_usual_level() -> None:
    """Lows of three minutes now and then: the first eleven rows are averages and trends alone."""
    lead, paid = 12, []
    setting = Setting(lead, 0.8, 0.02, 3.75)
    for seed in range(6):
        random = np.random.default_rng(seed)
        low = np.convolve(random.random(120) < 0.1, np.ones(3))[:120] > 0
        load = np.repeat(np.where(low, 3.0, random.normal(8.0, 0.5, 120)), 12)
        rows = averages(load, lead)
        paid.append([price(load, known, setting, len(load)) for known in (rows, rows[:11])])
    with_usual, without = np.mean(paid, axis=0)
    assert with_usual < 0.99 * without


@pytest.mark.parametrize("lead", [0, 2, 12])
def test_a_load_that_stays_needs_no_margin_at_any_lead_time(lead: int) -> None:
    load = np.full(120, 7.5)
    rule = rehearse(load, averages(load, lead), Setting(lead, 0.8, 0.01, 3.75), 5.0)
    assert math.ceil(rule.rate(averages(load, lead))) == 8


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), lead=st.sampled_from([2, 6]))
def test_the_rule_would_have_kept_the_promise_where_a_margin_can(seed: int, lead: int) -> None:
    """Its answer to a backlog is left out here, which can only be later."""
    load = 8.0 + noisy(300, seed) / 8.0
    rows, setting = averages(load, lead), Setting(lead, 0.8, 0.01, 3.75)
    rules = rehearse(load, rows, setting, 5.0)
    assert 1.0 <= rules.weights.sum() <= MARGINS[-1]
    assert late_share(load, rules, rows, setting) <= 0.05


@pytest.mark.parametrize("lead", [2, 12])
def test_rules_that_decide_together_do_better_on_what_comes_than_the_best_of_them(
    lead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty loads whose minutes differ by chance: learned on 15 lead times, judged on the rest."""
    setting, known, total = Setting(lead, 0.8, 0.01, 3.75), 15 * (lead + 1), {}
    for unsure in (rehearsal.UNSURE, 1e-9):
        monkeypatch.setattr(rehearsal, "UNSURE", unsure)
        paid = []
        for seed in range(20):
            minutes = np.random.default_rng(seed).gamma(10.0, 0.8, 25)
            load = np.repeat(minutes, lead)
            paid.append(price(load, averages(load, lead), setting, known))
        total[unsure] = float(np.mean(paid))
    together, best = total.values()
    assert together < 0.98 * best


def test_after_a_fall_a_rule_that_holds_the_old_level_does_not_decide_alone() -> None:
    """Two minutes at 100, then 5: one rule in ten still asks for 100."""
    row = np.concatenate([np.full(24, 100.0), np.full(12, 5.0)])[None]
    rules = Rules(np.array([[0.9, 0.1]]), holds=(0, 24))
    assert 5.0 < rules.rate(row) < 0.7 * (0.9 * 5.0 + 0.1 * 100.0)


def test_a_slow_wave_is_given_back_at_once() -> None:
    wave = 40.0 + 30.0 * np.sin(np.arange(400) / 40.0)
    assert rehearse(wave, averages(wave, 6), Setting(6, 0.8, 0.01, 3.75), 5.0).holds == (0,)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), lead=st.sampled_from([2, 12]))
def test_of_rules_that_hold_and_rules_that_do_not_the_better_kind_decides(
    seed: int, lead: int
) -> None:
    """Against every rule replayed on its own."""
    load = np.repeat(np.random.default_rng(seed).gamma(8.0, 1.0, 40), 6)
    rows, setting = averages(load, lead), Setting(lead, 0.8, 0.01, 3.75)
    least, weight = {True: math.inf, False: math.inf}, weights(len(load), lead)
    for row, hold, margin in product(rows, holds_of(lead, 5.0), MARGINS):
        cost, late = replayed(load, row, int(hold), float(margin), setting, weight)
        cost += LATE_PRICE * max(0.0, late - setting.allowed) * float(weight @ load)
        least[bool(hold)] = min(least[bool(hold)], cost)
    chosen = min(rehearse(load, rows, setting, 5.0).holds) > 0
    assert least[chosen] < 1.1 * least[not chosen]


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
                rehearse(load, rows, Setting(lead, 0.8, late, 3.75), 5.0).rate(rows[:, :t])
                for t in range(100, 400, 50)
            ]
        )
        for late in (0.1, 0.01, 0.001)
    ]
    assert asked[0] <= asked[1] * 1.05 <= asked[2] * 1.1


@pytest.mark.parametrize("lead", [2, 12])
def test_a_load_that_grows_restless_is_met_before_it_makes_up_much_of_what_was_seen(
    lead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half an hour of noise after seven hours of calm: with an even memory the calm still decides,
    and what comes next is late.
    """
    random = np.random.default_rng(11)
    calm, restless = random.gamma(400, 8 / 400, 5000), random.gamma(9, 8 / 9, 700)
    work = np.concatenate([calm, restless])
    seen = 5360
    rows, setting = averages(work, lead), Setting(lead, 0.8, 0.01, 3.75)
    late = {}
    for name, half_life in (("faded", rehearsal.HALF_LIFE), ("even", math.inf)):
        monkeypatch.setattr(rehearsal, "HALF_LIFE", half_life)
        rules = rehearse(work[:seen], rows[:, :seen], setting, 5.0)
        late[name] = outcome(work, rules, rows, setting, since=seen)[1]
    assert late["faded"] < 0.6 * late["even"]
