"""Bounded series against plain lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.web.series import RecentSeries, WholeSeries

VALUES = st.lists(st.one_of(st.none(), st.floats(0, 1e6)), min_size=1, max_size=200)


def points(values: list[float | None]) -> list[tuple[float, float]]:
    return [(float(i), np.nan if v is None else v) for i, v in enumerate(values)]


@settings(deadline=None, max_examples=60)
@given(VALUES, st.integers(1, 20))
def test_recent_keeps_exactly_the_last_points(values: list[float | None], limit: int) -> None:
    series = RecentSeries(1, limit)
    for at, v in points(values):
        series.append(at, np.array([v]))
    np.testing.assert_array_equal(series.columns().T, np.array(points(values)[-limit:]))


@settings(deadline=None, max_examples=60)
@given(VALUES, st.sampled_from([2, 4, 8, 16]))
def test_whole_shows_every_window_in_at_most_limit_points(
    values: list[float | None], limit: int
) -> None:
    series = WholeSeries(("mean", "max", "last"), limit)
    for at, v in points(values):
        series.append(at, np.array([v, v, v]))
    at, mean, top, last = series.columns()
    assert len(at) <= limit
    for k in range(len(at)):
        covered = [v for v in values[k * series.stride : (k + 1) * series.stride] if v is not None]
        assert at[k] == min((k + 1) * series.stride, len(values)) - 1
        if covered:
            assert top[k] == max(covered)
            assert last[k] == covered[-1]
            assert min(covered) - 1e-6 <= mean[k] <= max(covered) + 1e-6
        else:
            assert np.isnan([mean[k], top[k], last[k]]).all()


def test_the_mean_of_a_measured_run_stays_its_mean() -> None:
    series = WholeSeries(("mean",), 8)
    for at in range(64):
        series.append(at, np.array([float(at)]))
    assert series.stride == 8
    np.testing.assert_allclose(series.columns()[1], np.arange(64).reshape(8, 8).mean(axis=1))


@pytest.mark.parametrize("limit", [0, 1, 7])
def test_an_odd_limit_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="even"):
        WholeSeries(("mean",), limit)
