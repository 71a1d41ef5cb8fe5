"""What ways do to counts, against the moments of X, the events that an operator gets of each
outside event.
"""

import numpy as np
import pytest

from foretide.sim.fluid.variation import alike, of_paths


def by_operator(edges: dict[str, float], splits: str = "") -> dict[str, tuple[float, float]]:
    """Variation over long times and simultaneous_arrivals of each operator; ``a`` is the source."""
    names = sorted({n for edge in edges for n in edge})
    shares = np.array([[edges.get(p + c, 0.0) for c in names] for p in names])
    long, simultaneous_arrivals = of_paths(
        shares, np.array([n in splits for n in names]), np.array([float(n == "a") for n in names])
    )
    return {
        n: (float(v), float(m)) for n, v, m in zip(names, long, simultaneous_arrivals, strict=True)
    }


def test_a_split_that_meets_again_is_what_it_was_and_two_coins_are_not():
    """Split: X = 1. Each branch by its own coin of 0.6 and 0.4: E[X] = 1, E[X^2] = 1 + 2 * 0.24."""
    edges = {"ab": 0.6, "ac": 0.4, "bd": 1.0, "cd": 1.0}
    assert by_operator(edges, "a")["d"] == pytest.approx((1.0, 0.0))
    assert by_operator(edges)["d"] == pytest.approx((1.48, 0.0))


def test_copies_come_at_once_and_their_descendants_one_by_one():
    """Three copies: X = 3, all at once. Half of each goes on: X is binomial, E[X^2] / E[X] = 3 /
    1.5.
    """
    paths = by_operator({"ab": 3.0, "bc": 0.5})
    assert paths["b"] == pytest.approx((1.0, 2.0))
    assert paths["c"] == pytest.approx((2.0, 0.0))


def test_fractions_of_copies_come_by_chance():
    """2.5 copies are two or three: E[X^2] / E[X] = 6.5 / 2.5, of which the event itself is 1 and
    simultaneous arrivals are the rest.
    """
    assert by_operator({"ab": 2.5})["b"] == pytest.approx((1.0, 1.6))


def test_without_returns_and_copies_services_are_not_alike():
    row = np.array([[0.0, 1.0], [0.0, 0.0]])
    assert alike(row, np.array([0.3, 0.3]), np.ones(2), np.array([False, True])).tolist() == [
        0.0,
        0.0,
    ]
