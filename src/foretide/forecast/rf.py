"""PA-SPS 'rf': a random forest on the time index, as published, and on lag features."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from foretide.forecast.lags import Lagged
from foretide.forecast.sampling import ahead, samples, windows
from foretide.model import Array, Forecast


class TimeForest:
    """A random forest from the time index to the rate over the last ``last`` samples of ``sample``
    windows (PA-SPS, section 3.1). 100 trees are scikit-learn's default; 'rf-tuned' has 20, which is
    faster and no worse.

    A forest cannot extrapolate: beyond its windows it roughly repeats the last ones. Trained at
    every forecast. Needs ten windows.
    """

    def __init__(self, last: int = 100, sample: int = 1, trees: int = 100, seed: int = 0) -> None:
        self.last = last
        self.sample = sample
        self.trees = trees
        self.seed = seed

    def fit(self, series: Array) -> None:
        """No training: the forest is grown at every forecast."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        rates = samples(recent, self.last, self.sample, least=-(-10 // self.sample))
        at = np.arange(len(rates) + ahead(horizon, self.sample))[:, None]
        model = RandomForestRegressor(self.trees, random_state=self.seed, n_jobs=1)
        model.fit(at[: len(rates)], rates)
        return Forecast.of(windows(model.predict(at[len(rates) :]), horizon, self.sample))


def forest_lags(
    lags: int = 30, steps: int = 6, most: int = 5000, trees: int = 30, leaf: int = 5, seed: int = 0
) -> Lagged:
    """A forest from the last ``lags`` windows to the next ``steps``, each input divided by its
    mean.
    """
    return Lagged(
        lambda: RandomForestRegressor(
            trees, min_samples_leaf=leaf, max_features=0.4, random_state=seed, n_jobs=1
        ),
        lags,
        steps,
        most,
    )
