"""Exponential smoothing state space models, the best of the family by information criterion."""

from __future__ import annotations

from typing import Any

from statsforecast.models import MSTL, AutoETS

from foretide.forecast.stats import Statistical


def ets(last: int = 1000, longest: int = 400) -> Statistical:
    """Error, trend and season of the family chosen on the last ``last`` windows.

    The family itself carries seasons up to 24 windows; a longer one, up to ``longest``, is taken out by seasonal-trend
    decomposition, smoothed without it and put back.
    """

    def model(season: int) -> Any:
        return AutoETS(season_length=season) if season <= 24 else MSTL(season, AutoETS(model="ZZN"))

    return Statistical(model, last, longest)
