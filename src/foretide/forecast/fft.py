"""PA-SPS 'fft': a polynomial trend and the strongest frequencies of the last samples, continued, as
published and tuned.
"""

from __future__ import annotations

import numpy as np

from foretide.forecast.sampling import ahead, samples, windows
from foretide.model import Array, Forecast
from foretide.series import filled


class DartsFourier:
    """The FFT model of the Darts library as the authors of PA-SPS call it (section 3.1), over the
    last ``last`` samples of ``sample`` windows. Needs five samples.

    A polynomial of degree 3 is taken away; of the two-sided transform of the rest the 10 strongest
    coefficients are kept (Darts' default; a wave is two of them), the rest repeats with the length
    of the samples, and the polynomial goes on. A cubic through 12 samples leaves them fast:
    forecasts far off are part of the method.

    >>> DartsFourier(last=8).forecast(np.tile([1.0, 5.0, 9.0, 5.0], 4), horizon=1).mean[0] > 0
    True
    """

    def __init__(
        self, last: int = 100, sample: int = 1, degree: int = 3, strongest: int = 10
    ) -> None:
        self.last = last
        self.sample = sample
        self.degree = degree
        self.strongest = strongest

    def fit(self, series: Array) -> None:
        """No training: the spectrum is computed at every forecast."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        rates = samples(recent, self.last, self.sample, least=5)
        n = len(rates)
        trend = np.polynomial.Polynomial.fit(np.arange(n), rates, min(self.degree, n - 1))
        spectrum = np.fft.fft(rates - trend(np.arange(n)))
        dropped = np.argsort(-np.abs(spectrum), kind="stable")[self.strongest :]
        spectrum[dropped] = 0.0
        wave = np.real(np.fft.ifft(spectrum))
        at = np.arange(n, n + ahead(horizon, self.sample))
        return Forecast.of(windows(trend(at) + wave[at % n], horizon, self.sample))


class Fourier:
    """Trend plus harmonics over the last ``last`` windows, tuned: 'fft-tuned'. Needs four windows.

    A polynomial of ``degree`` is fitted and taken away; of what is left the ``strongest``
    frequencies of the discrete Fourier transform are kept (the constant counts as one) and
    continued beyond the end; the polynomial is added again.

    >>> wave = 10 + 3 * np.cos(2 * np.pi * np.arange(40) / 8)
    >>> np.round(Fourier(degree=0).forecast(wave, horizon=3).mean, 6)
    array([13.     , 12.12132, 10.     ])
    """

    def __init__(self, last: int = 100, degree: int = 1, strongest: int = 10) -> None:
        self.last = last
        self.degree = degree
        self.strongest = strongest

    def fit(self, series: Array) -> None:
        """No training: the spectrum is computed at every forecast."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        rates = filled(recent[-self.last :], least=4)
        n = len(rates)
        centre = (n - 1) / 2  # a centred, scaled time index keeps the polynomial well conditioned
        at, ahead = (np.arange(n) - centre) / n, (np.arange(n, n + horizon) - centre) / n
        trend = np.polynomial.polynomial.polyfit(at, rates, min(self.degree, n - 1))
        spectrum = np.fft.rfft(rates - np.polynomial.polynomial.polyval(at, trend))
        # Every frequency but the constant and, for even n, the highest stands for itself and its
        # mirror image.
        twice = np.full(len(spectrum), 2.0)
        twice[0] = 1.0
        if n % 2 == 0:
            twice[-1] = 1.0
        kept = np.argsort(-np.abs(spectrum), kind="stable")[: self.strongest]
        turns = np.outer(np.arange(n, n + horizon), kept) / n
        waves = (twice[kept] * np.real(spectrum[kept] * np.exp(2j * np.pi * turns))).sum(axis=1) / n
        return Forecast.of(np.polynomial.polynomial.polyval(ahead, trend) + waves)
