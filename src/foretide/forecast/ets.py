"""Exponential smoothing state space models, the best of the family by information criterion."""

from __future__ import annotations

from typing import Any

from statsforecast.models import MSTL, AutoETS

from foretide.forecast.stats import Statistical


def ets(last: int = 1000, longest: int = 400) -> Statistical:
    """Error and trend of the family chosen on the last ``last`` windows.

    A season of up to ``longest`` windows is taken out by seasonal-trend decomposition and put back:
    the family's own seasonal states would start at the phase at which the training windows began.
    Forecasts filter the last 1,000 windows, so that the level at which those began has faded.
    """

    def model(season: int) -> Any:
        return AutoETS(season_length=1) if season == 1 else MSTL(season, AutoETS(model="ZZN"))

    return Statistical(model, last, longest, shown=1000)
