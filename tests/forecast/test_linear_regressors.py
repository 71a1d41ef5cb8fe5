"""The linear solvers against numpy's least squares and scipy's linear programme for least absolute
errors.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from foretide.forecast.linear_regressors import LeastAbsolute, LeastSquares


def problem(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 3))
    return x, (x @ [2.0, -1.0, 0.5] + 10 + rng.standard_t(2, 200))[:, None]


@pytest.mark.parametrize("seed", range(3))
def test_least_squares_against_numpy(seed: int) -> None:
    x, y = problem(seed)
    fitted = LeastSquares(ridge=0.0)
    fitted.fit(x, y)
    expected = np.linalg.lstsq(np.column_stack((x, np.ones(200))), y, rcond=None)[0]
    np.testing.assert_allclose(fitted.coefficients, expected, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_least_absolute_errors_against_a_linear_programme(seed: int) -> None:
    """min sum u + v with y = Xb + u - v, u and v >= 0."""
    x, y = problem(seed)
    rows = np.column_stack((x, np.ones(200)))
    free, cost = (None, None), np.concatenate((np.zeros(4), np.ones(400)))
    best = linprog(
        cost,
        A_eq=np.hstack((rows, np.eye(200), -np.eye(200))),
        b_eq=y[:, 0],
        bounds=[free] * 4 + [(0, None)] * 400,
    )
    fitted = LeastAbsolute(ridge=0.0, rounds=30)
    fitted.fit(x, y)
    assert np.abs(y - rows @ fitted.coefficients).sum() <= 1.005 * best.fun


def test_weights_count_a_pair_more_than_once() -> None:
    x, y = problem(9)
    twice, weighted = LeastSquares(ridge=0.0), LeastSquares(ridge=0.0)
    twice.fit(np.vstack((x, x[:50])), np.vstack((y, y[:50])))
    weighted.fit(x, y, np.where(np.arange(200) < 50, 2.0, 1.0))
    np.testing.assert_allclose(weighted.coefficients, twice.coefficients, rtol=1e-6)
