import datetime

import numpy as np
import pyarrow as pa
import pytest

from foretide.balance.arrow_keys import keys_of

COLUMNS = {
    "int": pa.array([3, -1, 3, None]),
    "uint8": pa.array([3, 1, 3, None], pa.uint8()),
    "float": pa.array([0.5, -2.0, 0.5, None]),
    "bool": pa.array([True, False, True, None]),
    "string": pa.array(["a", "é", "a", None]),
    "binary": pa.array([b"a", b"\x00", b"a", None]),
    "dictionary": pa.array(["a", "b", "a", None]).dictionary_encode(),
    "date": pa.array(
        [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2), datetime.date(2026, 1, 1), None]
    ),
    "timestamp": pa.array(
        [
            datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
            datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
            datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
            None,
        ]
    ),
    "decimal": pa.array([1, 2, 1, None]).cast(pa.decimal128(25, 2)),
    "list": pa.array([[1, 2], [2], [1, 2], None]),
    "struct": pa.array([{"a": 1}, {"a": 2}, {"a": 1}, None]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_equal_values_have_equal_keys_and_others_differ(kind: str) -> None:
    keys = keys_of([COLUMNS[kind]])
    assert keys.dtype == np.uint64
    assert keys[0] == keys[2]
    assert len(set(keys.tolist())) == 3, "two values and null"


def test_a_slice_and_chunks_give_the_same_keys() -> None:
    whole = pa.array(["x", "y", "z", "x"])
    np.testing.assert_array_equal(keys_of([whole.slice(1, 2)]), keys_of([whole])[1:3])
    np.testing.assert_array_equal(
        keys_of([pa.chunked_array([whole[:2], whole[2:]])]), keys_of([whole])
    )


def test_columns_are_combined_in_order_and_seeds_differ() -> None:
    a, b = pa.array([1, 2]), pa.array([2, 1])
    assert keys_of([a, b])[0] != keys_of([b, a])[0]
    assert keys_of([a], seed=1)[0] != keys_of([a], seed=2)[0]
    assert keys_of([pa.array([0.0])])[0] == keys_of([pa.array([-0.0])])[0]


def test_keys_spread_evenly() -> None:
    """Chi-squared over 64 buckets of 64,000 consecutive numbers: far from any pattern."""
    buckets = np.bincount(
        (keys_of([pa.array(range(64_000))]) % np.uint64(64)).astype(int), minlength=64
    )
    assert ((buckets - 1000) ** 2 / 1000).sum() < 120
