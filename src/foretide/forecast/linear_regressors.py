"""Linear regressors in plain numpy: least squares and least absolute errors."""

from __future__ import annotations

import numpy as np

from foretide.model import Array


class LeastSquares:
    """Ridge regression with an intercept; ``ridge`` is relative to each feature's own square sum.

    ``(X'X + ridge * diag(X'X)) b = X'Y``

    >>> fitted = LeastSquares(ridge=0.0)
    >>> fitted.fit(np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]]))
    >>> fitted.predict(np.array([[3.0]])).round(6)
    array([[7.]])
    """

    def __init__(self, ridge: float = 1e-3) -> None:
        self.ridge = ridge
        self.coefficients: Array = np.empty((0, 0))

    def fit(self, x: Array, y: Array, weights: Array | None = None) -> None:
        rows = with_intercept(x)
        self.coefficients = solved(
            rows, y, np.ones(len(rows)) if weights is None else weights, self.ridge
        )

    def predict(self, x: Array) -> Array:
        return np.asarray(with_intercept(x) @ self.coefficients)


class LeastAbsolute(LeastSquares):
    """Least absolute errors by iteratively reweighted least squares: weights ``1 / max(|error|, 1 %
    of the mean answer)``.

    It forecasts the median, which a few bursts cannot pull up; the upper quantile takes care of the
    bursts.

    >>> fitted = LeastAbsolute()
    >>> fitted.fit(np.zeros((5, 1)), np.array([[1.0], [1.0], [1.0], [1.0], [90.0]]))
    >>> fitted.predict(np.zeros((1, 1))).round(1)
    array([[1.]])
    """

    def __init__(self, ridge: float = 1e-3, rounds: int = 12) -> None:
        super().__init__(ridge)
        self.rounds = rounds

    def fit(self, x: Array, y: Array, weights: Array | None = None) -> None:
        rows = with_intercept(x)
        base = np.ones(len(rows)) if weights is None else weights
        columns = []
        for step in range(y.shape[1]):
            answer, pull = y[:, step : step + 1], base
            floor = 0.01 * float(np.abs(answer).mean()) + 1e-9
            for _ in range(self.rounds):
                coefficients = solved(rows, answer, pull, self.ridge)
                pull = base / np.maximum(np.abs(answer - rows @ coefficients)[:, 0], floor)
            columns.append(coefficients)
        self.coefficients = np.hstack(columns)


def with_intercept(x: Array) -> Array:
    """The features and a column of ones."""
    return np.column_stack((x, np.ones(len(x))))


def solved(x: Array, y: Array, weights: Array, ridge: float) -> Array:
    """Weighted ridge regression by the normal equations."""
    weighted = x * weights[:, None]
    gram = weighted.T @ x
    gram[np.diag_indices_from(gram)] += ridge * np.diag(gram) + 1e-9 * max(
        1.0, float(np.trace(gram)) / len(gram)
    )
    return np.asarray(np.linalg.solve(gram, weighted.T @ y))
