"""The Theta method, best of its four variants."""

from __future__ import annotations

from statsforecast.models import AutoTheta

from foretide.forecast.stats import Statistical


def theta(last: int = 1000, longest: int = 400) -> Statistical:
    """The Theta variant of least error on the last ``last`` windows; seasons up to ``longest`` are
    decomposed by ratio.
    """
    return Statistical(lambda season: AutoTheta(season_length=season), last, longest)
