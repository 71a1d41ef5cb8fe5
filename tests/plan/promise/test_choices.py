"""The price of other promises: against every rule replayed on its own, and in words."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.model import Choice
from foretide.plan.foretide import Foretide
from foretide.plan.promise.choices import SHARES, choices, in_words
from foretide.plan.promise.rehearsal import (
    MARGINS,
    Rules,
    Setting,
    averages,
    holds_of,
    rehearse,
    replayed,
    weights,
)

TERMS = Foretide(target_s=5.0, share=0.99).terms


def known(kept: float, *points: tuple[float, float]) -> Rules:
    """Rules whose best ones kept these shares at these costs."""
    shares, costs = np.array(points, dtype=float).reshape(-1, 2).T
    return Rules(np.empty(0), (), kept, (shares, costs))


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 1000), lead=st.sampled_from([0, 3]))
def test_a_share_costs_what_the_cheapest_rule_cost_that_kept_it(seed: int, lead: int) -> None:
    load = np.random.default_rng(seed).gamma(4.0, 2.0, 60)
    rows, setting = averages(load, lead), Setting(lead, 0.8, 0.01, 3.75)
    rules, weight = rehearse(load, rows, setting, 5.0), weights(len(load), lead)
    each = [
        replayed(load, row, int(hold), float(margin), setting, weight)
        for row, hold, margin in product(rows, holds_of(lead, 5.0), MARGINS)
    ]
    for share in SHARES:
        kept = [cost / (weight @ load) for cost, late in each if 1.0 - late >= share - 1e-9]
        assert rules.cost(share) == (pytest.approx(min(kept)) if kept else None)
    costs = [c.cost for c in choices(rules, 0.99)]
    assert costs == sorted(costs)
    assert 1.0 - max(late for _, late in each) <= rules.kept <= 1.0


def test_the_promised_share_is_among_the_choices_and_shares_that_no_rule_kept_are_not() -> None:
    rules = known(0.985, (0.985, 1.5), (0.94, 1.2))
    assert choices(rules, 0.97) == (
        Choice(0.9, 1.2),
        Choice(0.95, 1.5),
        Choice(0.97, 1.5),
        Choice(0.98, 1.5),
    )


def test_a_promise_that_is_kept_names_the_next_lower_and_the_next_higher_one() -> None:
    rules = known(0.991, (0.999, 1.8), (0.992, 1.5), (0.98, 1.2))
    assert in_words(rules, TERMS) == (
        "99 % within 5 s would have cost 1.50 replicas for each busy one so far, starts and stops "
        "included; 98 % 20 % less; 99.5 % 20 % more"
    )
    same = known(0.991, (0.992, 1.5))
    assert in_words(same, TERMS).endswith("included; 98 % as much")


def test_a_promise_that_is_given_up_says_what_it_would_have_cost() -> None:
    rules = known(0.93, (0.995, 5.5), (0.93, 2.6))
    assert in_words(rules, TERMS) == (
        "99 % within 5 s would have cost 5.50 replicas for each busy one so far, starts and stops "
        "included, more than late events are worth (late_price 18): the rules that decide kept 93 %"
    )


def test_a_promise_out_of_reach_says_what_was_in_reach() -> None:
    rules = known(0.93, (0.984, 3.5), (0.93, 2.6))
    assert in_words(rules, TERMS) == (
        "no rule would have kept 99 % within 5 s so far, 98.4 % at most; the rules that decide "
        "kept 93 %"
    )


def test_a_higher_price_of_lateness_buys_more_of_the_promise() -> None:
    """Minutes that differ by chance, which nothing foresees."""
    load, lead = np.repeat(np.random.default_rng(2).gamma(2.0, 4.0, 60), 12), 12
    rows = averages(load, lead)
    cheap, dear = (
        rehearse(load, rows, Setting(lead, 0.8, 0.01, 3.75, late_price=price), 5.0)
        for price in (3.0, 60.0)
    )
    assert cheap.kept < dear.kept - 0.02
    assert cheap.rate(rows) < dear.rate(rows)
    assert math.isclose(cheap.cost(0.9) or 0.0, dear.cost(0.9) or 1.0)
