"""Ahead: how often a run's forecast was nearer to the load to come than the load of the moment.

A forecast that only repeats what it sees follows the load; one that knows the season runs ahead of
it. Owns that figure and its sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foretide.figures.record import RunRecord
from foretide.wording import percent, plural

STEPS = 2
"""Windows ahead: capacity is planned for the next window, so the one after shows foresight."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """``share`` of the ``windows`` in which the forecast was nearer to what came; its errors are
    ``error_ratio`` times those of the load of the moment.
    """

    share: float
    windows: int
    error_ratio: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"Forecast {self.seconds:g} s ahead: nearer to the load that came than the load of the "
            f"moment in {percent(self.share)} of {plural(self.windows, 'window')}; its errors were "
            f"{self.error_ratio:.2f} times as large."
        )


def ahead(record: RunRecord, steps: int = STEPS) -> Ahead | None:
    """Over all windows with a load and a forecast made ``steps`` windows before; None without
    any.
    """
    rates, came = record.rates(), {s.at: i for i, s in enumerate(record.snapshots)}
    forecast_errors, moment_errors = [], []
    for decision in record.decisions:
        ahead_of = [decision.forecasts.get(n) for n in record.topology.sources]
        if decision.snapshot is None or any(f is None or f.horizon < steps for f in ahead_of):
            continue
        now = came[decision.snapshot.at]
        if now + steps >= len(rates) or rates[now + steps] <= 0:
            continue
        truth = rates[now + steps]
        expected = sum(f.mean[steps - 1] for f in ahead_of if f is not None)
        forecast_errors.append(abs(expected - truth))
        moment_errors.append(abs(rates[now] - truth))
    if not forecast_errors:
        return None
    nearer = np.array(forecast_errors) < np.array(moment_errors)
    ratio = sum(forecast_errors) / max(sum(moment_errors), 1e-12)
    return Ahead(float(nearer.mean()), len(nearer), float(ratio), steps * record.window_s)
