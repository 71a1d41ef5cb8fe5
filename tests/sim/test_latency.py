"""Latencies of a run: exact up to the limit, fine bins beyond."""

import numpy as np
import pytest

from foretide.sim.latency import Latencies


def test_beyond_the_limit_values_keep_a_tenth_of_a_percent():
    seconds = np.geomspace(0.001, 100, 5000).astype(np.float32)
    exact, fine = Latencies(limit=5000), Latencies(limit=2000)
    for part in np.split(seconds, 5):
        exact.add(part)
        fine.add(part)
    assert exact.weights() is None
    assert exact.values_ms().size == 5000
    weights = fine.weights()
    assert weights is not None
    assert weights.sum() == 5000
    assert fine.values_ms() @ weights / 5000 == pytest.approx(exact.values_ms().mean(), rel=1e-3)
    at = np.searchsorted(np.cumsum(weights), 0.9 * 5000)
    assert fine.values_ms()[at] == pytest.approx(np.quantile(exact.values_ms(), 0.9), rel=2e-3)
