"""Exponential smoothing: weights that sum to one, and a weight that suits the load."""

from __future__ import annotations

import numpy as np
import pytest

from foretide.forecast.smooth import Smooth, fading


def test_weights_sum_to_one_and_fade_by_the_same_factor() -> None:
    weights = fading(0.25, 10)
    assert weights.sum() == pytest.approx(1)
    assert (weights[:-1] / weights[1:]) == pytest.approx(np.full(9, 0.75))


def test_a_noisy_level_is_smoothed_long_and_a_random_walk_short() -> None:
    rng = np.random.default_rng(8)
    level, walk = Smooth(), Smooth()
    level.fit(100 + rng.normal(0, 10, 3000))
    walk.fit(1000 + np.cumsum(rng.normal(0, 10, 3000)))
    assert (level.weight, walk.weight) == (0.05, 0.9)


def test_too_short_a_series_keeps_the_weight() -> None:
    model = Smooth(weight=0.3)
    model.fit(np.arange(50.0))
    assert model.weight == 0.3
