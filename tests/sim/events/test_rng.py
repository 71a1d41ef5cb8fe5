"""Random numbers against their distributions."""

import numba
import numpy as np
import pytest
from scipy import stats

from foretide.sim.events import rng


@numba.njit
def _fill(states, stream, exponential, out):
    for i in range(out.size):
        out[i] = rng.exponential(states, stream) if exponential else rng.uniform(states, stream)


def drawn(seed: int, n: int, stream: int = rng.WORK, exponential: bool = True) -> np.ndarray:
    out = np.empty(n)
    _fill(rng.streams(seed), stream, exponential, out)
    return out


@pytest.mark.parametrize(("exponential", "law"), [(True, stats.expon), (False, stats.uniform)])
def test_draws_follow_their_law(exponential, law):
    values = drawn(5, 2_000_000, exponential=exponential)
    assert stats.kstest(values, law.cdf).pvalue > 0.01
    for power in (1, 2, 3):
        assert np.mean(values**power) == pytest.approx(law.moment(power), rel=0.01)
    assert stats.pearsonr(values[1:], values[:-1]).pvalue > 0.01


def test_the_tail_beyond_the_last_layer_is_exponential_too():
    values = drawn(6, 4_000_000)
    beyond = values[values > rng._TAIL] - rng._TAIL
    assert len(beyond) == pytest.approx(len(values) * np.exp(-rng._TAIL), rel=0.1)
    assert stats.kstest(beyond, stats.expon.cdf).pvalue > 0.01


def test_layers_have_equal_areas_up_to_the_top_of_the_density():
    areas = rng._WIDTH[1:] / rng._UNIT * np.diff(rng._HEIGHT)[1:]
    assert areas == pytest.approx(np.full(rng._LAYERS - 1, rng._AREA), rel=1e-12)
    below = rng._TAIL * np.exp(-rng._TAIL) + np.exp(
        -rng._TAIL
    )  # the lowest layer: a rectangle and the tail
    assert below == pytest.approx(rng._AREA, rel=1e-12)


def test_a_seed_gives_the_same_numbers_and_streams_differ():
    assert drawn(1, 100).tolist() == drawn(1, 100).tolist()
    assert drawn(1, 100)[0] != drawn(2, 100)[0]
    assert drawn(1, 100)[0] != drawn(1, 100, stream=rng.ARRIVALS)[0]
