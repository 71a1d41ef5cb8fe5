"""The limit of ``benchmarks/blind_limit.py`` against policies that are tried one by one."""

import numpy as np
import pytest
from blind_limit import late_work, limit


def tried(rates: np.ndarray, windows: int, lead: int, base: float, follow: bool) -> tuple:
    """Mean replica-windows and late share of the policy that keeps ``base`` and, once it can,
    gives a higher row what it needs until the row ends.
    """
    blind = min(windows, lead + 1)
    extra = np.maximum(np.ceil(rates) - base, 0.0) * follow
    cost = windows * base + (windows - blind) * extra + 2 * 3.75 * extra * (windows > blind)
    levels = np.array([base])
    late = late_work(rates, levels, blind if follow else windows)[:, 0]
    return float(cost.mean()), float(late.sum() / (windows * rates.sum()))


@pytest.mark.parametrize("lead", [2, 12])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_policy_that_is_tried_costs_less(lead: int, seed: int) -> None:
    rates = np.random.default_rng(seed).gamma(1.5, 6.0, 60)
    found = {share: limit(rates, 12, lead, share, 3.75) for share in (0.9, 0.97, 0.999)}
    assert found[0.9] < found[0.97] < found[0.999]
    nearest = np.inf
    for base in range(1, int(rates.max()) + 2):
        for follow in (False, True):
            cost, late = tried(rates, 12, lead, base, follow)
            for share, least in found.items():
                if 1.0 - late >= share:
                    assert cost >= 0.999 * least
                    nearest = min(nearest, cost / least)
    assert nearest < 1.2, "the bound is not far below what can be done"


def test_where_rows_end_before_anything_asked_for_works_capacity_is_a_constant() -> None:
    """Rows of 2 and 6 by turns: 90 % in time take the price of late work to the mixture of two
    constants, and nothing between.
    """
    rates = np.array([2.0, 6.0])
    late = late_work(rates, np.arange(7.0), 12.0).mean(axis=0) / (12.0 * rates.mean())
    costs = 12.0 * np.arange(7.0)
    mixtures = [
        a * costs[i] + (1 - a) * costs[j]
        for i in range(7)
        for j in range(7)
        for a in np.linspace(0, 1, 201)
        if a * late[i] + (1 - a) * late[j] <= 0.1
    ]
    assert limit(rates, 12, 12, 0.9, change=0.0) == pytest.approx(min(mixtures), rel=0.01)
