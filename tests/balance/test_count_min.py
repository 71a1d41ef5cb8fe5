import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.balance.count_min import PRIME, CostSketch, CountMin, coefficients_of, shape
from foretide.errors import InvalidRecord

KEY = st.integers(0, 2**64 - 1)


def naive(keys: list[int], amounts: list[float], rows: int, columns: int, seed: int) -> np.ndarray:
    """The definition in plain Python integers: ((a x + b) mod p) mod columns."""
    cells = np.zeros((rows, columns))
    for key, amount in zip(keys, amounts, strict=True):
        for row, (a, b) in enumerate(coefficients_of(rows, seed).tolist()):
            cells[row, (a * (key % PRIME) + b) % PRIME % columns] += amount
    return cells


@settings(max_examples=50, deadline=None)
@given(pairs=st.lists(st.tuples(KEY, st.floats(0, 1e6)), max_size=60), seed=st.integers(0, 1000))
def test_equals_a_naive_reference_cell_for_cell(pairs: list[tuple[int, float]], seed: int) -> None:
    keys, amounts = [p[0] for p in pairs], [p[1] for p in pairs]
    sketch = CountMin(seed=seed)
    sketch.update(np.array(keys, dtype=np.uint64), np.array(amounts, dtype=float))
    np.testing.assert_array_equal(sketch.cells, naive(keys, amounts, 3, 55, seed))


def test_never_too_small_and_the_error_bound_holds_at_the_promised_rate() -> None:
    """Zipf data, 100 seeded trials: P(estimate > true + epsilon * total) <= delta, per query."""
    epsilon = delta = 0.05
    queries = exceeded = 0
    for trial in range(100):
        rng = np.random.default_rng(trial)
        keys = rng.zipf(1.5, 5000).clip(max=10_000).astype(np.uint64)
        sketch = CountMin(epsilon, delta, seed=trial)
        sketch.update(keys)
        values, true = np.unique(keys, return_counts=True)
        counts = sketch.query(values)
        assert (counts >= true).all()
        exceeded += int((counts > true + epsilon * len(keys)).sum())
        queries += len(values)
    assert exceeded / queries <= delta


def test_shape_of_the_paper() -> None:
    assert shape(0.05, 0.05) == (math.ceil(math.log(20)), math.ceil(math.e * 20))
    with pytest.raises(InvalidRecord, match="between 0 and 1"):
        shape(0, 0.5)


def test_merging_equals_seeing_both_streams() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 100, (2, 500)).astype(np.uint64)
    one, two, both = CountMin(seed=5), CountMin(seed=5), CountMin(seed=5)
    one.update(a)
    two.update(b)
    both.update(np.concatenate([a, b]))
    one.merge(two)
    np.testing.assert_array_equal(one.cells, both.cells)
    with pytest.raises(InvalidRecord, match="do not merge"):
        one.merge(CountMin(seed=6))


def test_a_sketch_survives_bytes() -> None:
    sketch = CostSketch(seed=9)
    sketch.update(np.arange(20, dtype=np.uint64), np.linspace(0.01, 0.1, 20))
    again = CostSketch.from_bytes(sketch.to_bytes())
    np.testing.assert_array_equal(
        again.estimate(np.arange(20, dtype=np.uint64)),
        sketch.estimate(np.arange(20, dtype=np.uint64)),
    )


@pytest.mark.slow
def test_hashes_are_the_same_in_every_process() -> None:
    """What a worker sketches, the driver must find."""
    code = (
        "import numpy as np; from foretide.balance.count_min import CountMin; s = CountMin(seed=4);"
        "s.update(np.arange(9, dtype=np.uint64)); print(s.to_bytes().hex())"
    )
    here = CountMin(seed=4)
    here.update(np.arange(9, dtype=np.uint64))
    for hash_seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        there = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
        )
        assert there.stdout.strip() == here.to_bytes().hex()


def test_costs_are_estimated_where_the_count_is_smallest() -> None:
    sketch = CostSketch(seed=1)
    keys = np.array([1, 2, 3], dtype=np.uint64).repeat(100)
    sketch.update(keys, np.array([0.01, 0.05, 0.1]).repeat(100))
    np.testing.assert_allclose(
        sketch.estimate(np.array([1, 2, 3], dtype=np.uint64)), [0.01, 0.05, 0.1], rtol=1e-9
    )
    assert sketch.mean_s == pytest.approx(0.16 / 3)
    sketch.fade(0.5)
    np.testing.assert_allclose(sketch.estimate(np.array([2], dtype=np.uint64)), [0.05], rtol=1e-9)
    assert sketch.events == pytest.approx(150)
    sketch.fade(1e-9)
    assert sketch.events == 0
    assert sketch.mean_s == 0
