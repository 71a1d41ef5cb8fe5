"""statsforecast models behind the protocol: they learn what they should, and give way where they
cannot.
"""

from __future__ import annotations

import numpy as np
import pytest

from foretide.errors import NotReady
from foretide.forecast import FORECASTERS
from foretide.forecast.evaluate import evaluate
from foretide.forecast.stats import LEARN_AGAIN, Statistical
from foretide.model import Array

pytest.importorskip("statsforecast", reason="the 'stats' extra is not installed")


class Counting:
    """A model that counts its lessons and answers the mean of what it is shown; ``breaks`` makes it
    fail.
    """

    fits = 0
    breaks = False

    def fit(self, values: Array) -> None:
        Counting.fits += 1
        if Counting.breaks:
            raise np.linalg.LinAlgError("singular")

    def forward(self, values: Array, h: int) -> dict[str, Array]:
        return {"mean": np.full(h, values.mean())}


def test_never_fitted_it_learns_at_the_first_and_every_50th_forecast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Counting, "fits", 0)
    model = Statistical(lambda season: Counting())
    for _ in range(LEARN_AGAIN + 1):
        model.forecast(np.arange(30.0), 2)
    assert Counting.fits == 2
    model.fit(np.arange(30.0))
    model.forecast(np.arange(30.0), 2)
    assert Counting.fits == 3


def test_where_an_estimate_is_impossible_the_last_window_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Counting, "breaks", True)
    assert Statistical(lambda season: Counting()).forecast(np.arange(30.0), 2).mean == (29.0, 29.0)


def test_twenty_windows_are_needed() -> None:
    with pytest.raises(NotReady, match="needs 20"):
        Statistical(lambda season: Counting()).forecast(np.arange(19.0), 1)


@pytest.mark.slow
def test_arima_learns_an_autoregression_down_to_its_noise() -> None:
    rng = np.random.default_rng(5)
    series = [100.0, 100.0]
    for _ in range(900):
        series.append(20 + 1.2 * series[-1] - 0.4 * series[-2] + rng.normal(0, 2))
    score, _ = evaluate(
        "arima", lambda seed: FORECASTERS.build("arima"), np.array(series), 1, every=2
    )
    assert score.rmse < 2.3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["auto-arima", "ets", "theta"])
def test_models_with_a_season_halve_the_error_of_persistence_on_a_wave(name: str) -> None:
    wave = (
        100
        + 50 * np.sin(2 * np.pi * np.arange(480) / 12)
        + np.random.default_rng(6).normal(0, 3, 480)
    )
    season, _ = evaluate(name, lambda seed: FORECASTERS.build(name), wave, 6, every=8)
    basic, _ = evaluate("basic", lambda seed: FORECASTERS.build("basic"), wave, 6, every=8)
    assert season.mae < 0.5 * basic.mae
