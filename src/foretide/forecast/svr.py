"""BGElasor's rival 'svr': support vector regression on lag features."""

from __future__ import annotations

from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVR

from foretide.forecast.lags import Lagged


def support_vectors(
    lags: int = 30, steps: int = 6, most: int = 2000, penalty: float = 1.0, tube: float = 0.01
) -> Lagged:
    """One support vector machine (radial kernel) per step ahead, Min-Max scaled on the training
    windows (BGElasor, section 5.2).

    Training time grows with the square of the windows: it learns from the last ``most``.
    """
    return Lagged(
        lambda: MultiOutputRegressor(SVR(C=penalty, epsilon=tube)),
        lags,
        steps,
        most,
        scaling="minmax",
    )
