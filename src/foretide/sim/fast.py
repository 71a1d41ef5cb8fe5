"""Cheaper versions of systems, for loads of many windows: the same methods, used less often.

Owns what is given up and the sentence about it. The rule depends on the number of windows alone, so
that a comparison gives the same figures on any machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil
from typing import Any

from foretide.systems import System

FORECASTS = 1_000
"""Forecasts per run of a forecaster that takes milliseconds for one."""
TRAININGS = 5
TRAINED_ON = 1_000
"""Trainings per run of a network, and the newest windows that each of them uses."""
NETWORKS = frozenset(
    f"{cell}{suffix}" for cell in ("lstm", "gru", "bilstm", "bigru") for suffix in ("", "-local")
)
COSTLY = NETWORKS | {"ann", "rf", "rf-lags", "svr", "auto-arima"}


def fast(system: System, windows: int, window_s: float) -> tuple[System, str]:
    """The system made cheaper for so many windows, and a sentence that says what differs ('' where
    nothing does).
    """
    given_up: list[str] = []
    cadence, constants = system.cadence, dict(system.forecaster_constants)
    per_window = cadence.steps_per_window(window_s)
    if per_window > 1:
        if "span" in constants:
            constants["span"] = max(1, round(constants["span"] / per_window))
        cadence = replace(cadence, observe_s=None)
        given_up.append(f"measures once per window instead of {per_window} times")
    every = ceil(windows / FORECASTS)
    if system.forecaster in COSTLY and every > cadence.fitted(window_s).forecast_every:
        cadence = replace(cadence, forecast_every_s=every * window_s)
        given_up.append(f"renews its forecasts every {every} windows")
    if system.forecaster in NETWORKS and cadence.fit_every and windows > FORECASTS:
        fit_every = max(cadence.fit_every, ceil(windows / TRAININGS))
        cadence = replace(cadence, fit_every=fit_every)
        constants |= {"limit": TRAINED_ON}
        given_up.append(f"trains every {fit_every:,} windows on the last {TRAINED_ON:,}")
    if not given_up:
        return system, ""
    changes: dict[str, Any] = {"cadence": cadence, "forecaster_constants": constants}
    return replace(system, **changes), f"{system.name} {_listed(given_up)}"


def _listed(parts: Iterable[str]) -> str:
    """Parts of a sentence.

    >>> _listed(["sees", "plans", "acts"])
    'sees, plans and acts'
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
