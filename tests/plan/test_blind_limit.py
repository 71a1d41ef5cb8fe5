"""The limit of ``benchmarks/blind_limit.py`` against policies that are tried one by one."""

from itertools import product

import numpy as np
import pytest
from blind_limit import late_in, limit

CHANGE = 3.75
FINE = 40


def late_steps(rates: np.ndarray, replicas: np.ndarray) -> np.ndarray:
    """Work that came in each fine step of these windows and was done more than a window later,
    first in, first out.
    """
    came = np.concatenate([[0.0], np.cumsum(np.repeat(rates, FINE) / FINE)])
    done = [0.0]
    for total, n in zip(came[1:], np.repeat(replicas, FINE) / FINE, strict=True):
        done.append(min(total, done[-1] + n))
    late = np.array(done)[FINE + 1 :] < came[1:-FINE] - 1e-9
    return np.diff(came)[: len(late)] * late


def tried(
    rows: np.ndarray, windows: int, lead: int, base: float, catch_up: float
) -> tuple[float, float]:
    """Mean replica-windows of a row and late share of the policy that keeps ``base`` and, once it
    can, gives a row what it needs and drains the queue in so many windows (0: never).
    """
    replicas, queue = [], 0.0
    for rate in rows:
        for t in range(windows):
            n = base
            if catch_up and t > lead:
                n = max(base, np.ceil(rate), np.ceil(rate + (queue - 0.9 * rate) / catch_up))
            replicas.append(n)
            queue = max(0.0, queue + rate - n)
    paid = np.sum(replicas) + CHANGE * np.abs(np.diff(replicas, prepend=base)).sum()
    work = np.repeat(rows, windows)
    return float(paid / len(rows)), float(late_steps(work, np.array(replicas)).sum() / work.sum())


@pytest.mark.parametrize("lead", [2, 12])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_policy_that_is_tried_costs_less(lead: int, seed: int) -> None:
    """Queues go on from row to row here, and high ones are caught up with in a window or more."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(1.5, 4.0, 30)
    rows = np.concatenate([rng.permutation(rates) for _ in range(10)])
    found = {share: limit(rates, 12, lead, share, CHANGE) for share in (0.9, 0.97, 0.999)}
    assert found[0.9] < found[0.97] < found[0.999]
    nearest = np.inf
    for base, catch_up in product(range(1, int(rates.max()) + 2), (0.0, 1.0, 2.0)):
        cost, late = tried(rows, 12, lead, base, catch_up)
        for share, least in found.items():
            if 1.0 - late >= share:
                assert cost >= 0.999 * least
                nearest = min(nearest, cost / least)
    assert nearest < 1.2, "the bound is not far below what can be done"


def test_what_is_late_in_a_window_is_what_a_fine_clock_counts() -> None:
    """The third window of a row at a rate of 6, with 2 replicas before it and n in it."""
    for n in (0.0, 2.0, 5.0, 11.0, 20.0):
        fine = late_steps(np.full(4, 6.0), np.array([2.0, 2.0, n, 99.0]))
        due = fine[: 2 * FINE].sum()  # what came in the first two windows
        assert late_in(6.0, 4.0, 2.0) + late_in(6.0, 8.0, n) == pytest.approx(due, abs=0.2), n
