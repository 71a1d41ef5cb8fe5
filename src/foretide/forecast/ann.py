"""PA-SPS 'ann': a small multi-layer perceptron on the time index, as published, and on lag
features.
"""

from __future__ import annotations

import numpy as np

from foretide.forecast.gaps import filled
from foretide.forecast.lags import Lagged
from foretide.forecast.perceptron import Perceptron
from foretide.model import Array, Forecast


class TimeNetwork:
    """A perceptron with one hidden layer from the time index to the rate over the last ``last``
    windows (PA-SPS, section 4).

    Time is mapped to -1..1 and rates to 0..1 over those windows; it is trained at every
    forecast. Beyond those windows the curve continues as its last hidden units happen to.
    Needs ten windows. The paper does not give the layer: ``hidden`` is ours.
    """

    def __init__(self, last: int = 100, hidden: int = 10, rounds: int = 100, seed: int = 0) -> None:
        self.last = last
        self.hidden = hidden
        self.rounds = rounds
        self.seed = seed

    def fit(self, series: Array) -> None:
        """No training here: the network is trained at every forecast."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        rates = filled(recent[-self.last :], least=10)
        n = len(rates)
        low, span = float(rates.min()), max(float(np.ptp(rates)), 1e-12)
        at = 2 * np.arange(n + horizon)[:, None] / (n - 1) - 1
        model = Perceptron((self.hidden,), self.rounds, self.seed)
        model.fit(at[:n], (rates - low) / span)
        return Forecast.of(low + span * model.predict(at[n:]))


def network_lags(
    lags: int = 30,
    steps: int = 6,
    most: int = 5000,
    hidden: int = 16,
    rounds: int = 100,
    seed: int = 0,
) -> Lagged:
    """A perceptron from the last ``lags`` windows to the next ``steps``, each input divided by its
    mean.
    """
    return Lagged(lambda: Perceptron((hidden,), rounds, seed), lags, steps, most)
