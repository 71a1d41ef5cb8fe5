"""PA-SPS 'ann': a multi-layer perceptron on the time index, as published and tuned, and on lag
features.
"""

from __future__ import annotations

import numpy as np

from foretide.forecast.lags import Lagged
from foretide.forecast.perceptron import DefaultPerceptron, Perceptron
from foretide.forecast.sampling import ahead, samples, windows
from foretide.model import Array, Forecast
from foretide.series import filled

LEVEL = 10.0


class DefaultNetwork:
    """scikit-learn's MLPRegressor with its defaults, from the time index to the rate over the last
    ``last`` samples of ``sample`` windows (PA-SPS, section 3.1; the authors' code takes 12 samples
    of 5 s).

    The default network converges only when targets are neither tiny nor huge. The authors divide
    their counts by 1000: ``unit`` does that, in events/s; None makes the mean of the samples 10,
    about what theirs is, whatever the load. Time stays 0, 1, 2, ... Beyond the samples the curve
    goes on as its hidden units happen to, mostly straight on. Needs ten windows.
    """

    def __init__(
        self,
        last: int = 100,
        sample: int = 1,
        unit: float | None = None,
        rounds: int = 200,
        seed: int = 1,
    ) -> None:
        self.last = last
        self.sample = sample
        self.unit = unit
        self.rounds = rounds
        self.seed = seed

    def fit(self, series: Array) -> None:
        """No training here: the network is trained at every forecast."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        rates = samples(recent, self.last, self.sample, least=-(-10 // self.sample))
        unit = self.unit or float(rates.mean()) / LEVEL or 1.0
        n = len(rates)
        model = DefaultPerceptron(self.rounds, self.seed)
        model.fit(np.arange(n, dtype=float)[:, None], rates / unit)
        at = np.arange(n, n + ahead(horizon, self.sample), dtype=float)
        values = model.predict(at[:, None]) * unit
        return Forecast.of(windows(values, horizon, self.sample))


class TimeNetwork:
    """A small perceptron from the time index to the rate over the last ``last`` windows, tuned:
    'ann-tuned'.

    Time is mapped to -1..1 and rates to 0..1 over those windows; it is trained at every
    forecast. Beyond those windows the curve continues as its last hidden units happen to.
    Needs ten windows.
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
