"""Arrow values to 64-bit keys: the same value gives the same key in every process, whatever its
type.

Fixed-width values are mixed from their bits; strings and binary are hashed once per distinct value;
nested values by their written form. A null is a value of its own. Apart from ``balance.keys``, so
that the groupings do not need pyarrow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from foretide.balance.keys import Keys, mixed

_NULL = np.uint64(0x9AE16A3B2F90404F)


def _as_bytes(value: object) -> bytes:
    if value is None:
        return b""
    return value if isinstance(value, bytes) else str(value).encode()


def _digest(value: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(value, digest_size=8).digest(), "little")


def _column(values: pa.Array) -> Keys:
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _column(values.dictionary_decode())
    if pa.types.is_null(kind):
        return np.full(len(values), _NULL)
    if pa.types.is_temporal(kind):
        values, kind = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()), pa.int64()
    if pa.types.is_boolean(kind):
        values, kind = values.cast(pa.uint8()), pa.uint8()
    if pa.types.is_integer(kind):
        plain = np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False))
        keys = mixed(
            plain.astype(np.int64).view(np.uint64)
            if plain.dtype.kind == "i"
            else plain.astype(np.uint64)
        )
    elif pa.types.is_floating(kind):
        bits = (
            np.asarray(pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False))
            + 0.0
        )  # -0.0 equals 0.0
        keys = mixed(bits.view(np.uint64))
    else:
        keys = _distinct(values)
    if values.null_count:
        keys = np.where(np.asarray(values.is_null().to_numpy(zero_copy_only=False)), _NULL, keys)
    return np.asarray(keys, dtype=np.uint64)


def _distinct(values: pa.Array) -> Keys:
    if pa.types.is_nested(values.type):
        written = pa.array(
            [None if v is None else repr(v) for v in values.to_pylist()], pa.string()
        )
        return _distinct(written)
    coded = values.dictionary_encode()
    words = coded.dictionary.to_pylist()
    table = np.array([_digest(_as_bytes(word)) for word in words] or [0], dtype=np.uint64)
    return np.asarray(
        table[np.asarray(pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False))]
    )


def keys_of(columns: Sequence[pa.Array | pa.ChunkedArray], seed: int = 0) -> Keys:
    """One key per row from one or more columns.

    >>> a = keys_of([pa.array(["x", "y", "x"]), pa.array([1, 1, 1])])
    >>> bool(a[0] == a[2]), bool(a[0] == a[1])
    (True, False)
    """
    flat = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
    with np.errstate(over="ignore"):
        keys = np.full(len(flat[0]), mixed(np.array([seed], dtype=np.uint64))[0])
        for column in flat:
            keys = mixed(keys ^ _column(column))
    return keys
