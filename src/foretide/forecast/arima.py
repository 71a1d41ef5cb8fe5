"""ARIMA: without season as BGElasor's first rival, with season as the field's standard."""

from __future__ import annotations

from typing import Any

from statsforecast.models import AutoARIMA

from foretide.forecast.stats import Statistical


def arima(last: int = 1000) -> Statistical:
    """ARIMA(p, d, q) without season, orders by the corrected Akaike criterion (BGElasor, section
    5.2, does not give its own).
    """
    return Statistical(lambda season: AutoARIMA(season_length=1, seasonal=False), last)


def auto_arima(last: int = 500, longest: int = 50) -> Statistical:
    """Seasonal ARIMA by stepwise search on the last ``last`` windows; seasons up to ``longest``
    windows, beyond that none.
    """

    def model(season: int) -> Any:
        if season == 1:
            return AutoARIMA(season_length=1)
        return AutoARIMA(
            season_length=season, approximation=True, max_p=3, max_q=3, max_P=1, max_Q=1, nmodels=20
        )

    return Statistical(model, last, longest)
