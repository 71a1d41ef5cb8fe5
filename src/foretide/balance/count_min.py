"""Count-Min sketches of counts and of cumulated execution times (Cormode and Muthukrishnan 2005;
DABS-Storm, section 5).

A sketch has ``rows = ceil(ln(1/delta))`` and ``columns = ceil(e/epsilon)`` cells. Row i hashes key
x to ``((a_i x + b_i) mod p) mod columns`` with p = 2^61 - 1: 2-universal (Carter and Wegman 1979).
A query takes the smallest cell: never less than the true sum, and more by over ``epsilon * total``
with probability at most ``delta``.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from foretide.balance.keys import Keys
from foretide.errors import InvalidRecord
from foretide.jit import entry, inner
from foretide.model import Array

PRIME = (1 << 61) - 1
Coefficients = npt.NDArray[np.uint64]


@inner
def modular(a: Any, x: Any, b: Any) -> Any:
    """``(a*x + b) mod (2^61 - 1)`` for a, x, b below 2^61, without 128-bit arithmetic: 2^61 = 1 and
    2^64 = 8 there.
    """
    p = np.uint64(0x1FFFFFFFFFFFFFFF)
    low = np.uint64(0xFFFFFFFF)
    a1, a0 = a >> np.uint64(32), a & low
    x1, x0 = x >> np.uint64(32), x & low
    middle = a1 * x0 + a0 * x1
    bottom = a0 * x0
    total = (
        np.uint64(8) * (a1 * x1)
        + (middle >> np.uint64(29))
        + ((middle & np.uint64(0x1FFFFFFF)) << np.uint64(32))
    )
    total = (total & p) + (total >> np.uint64(61)) + (bottom & p) + (bottom >> np.uint64(61)) + b
    total = (total & p) + (total >> np.uint64(61))
    return total - p if total >= p else total


@inner
def cell(coefficients: Coefficients, row: int, key: Any, columns: int) -> Any:
    """The column of a key in a row."""
    p = np.uint64(0x1FFFFFFFFFFFFFFF)
    x = (key & p) + (key >> np.uint64(61))
    return np.int64(
        modular(coefficients[row, 0], x if x < p else x - p, coefficients[row, 1])
        % np.uint64(columns)
    )


@entry
def add_all(cells: Array, coefficients: Coefficients, keys: Keys, amounts: Array) -> None:
    """Add an amount per key to one sketch."""
    rows, columns = cells.shape
    for i in range(len(keys)):
        for row in range(rows):
            cells[row, cell(coefficients, row, keys[i], columns)] += amounts[i]


@entry
def smallest(cells: Array, coefficients: Coefficients, keys: Keys) -> Array:
    """The smallest cell of each key."""
    rows, columns = cells.shape
    values = np.empty(len(keys))
    for i in range(len(keys)):
        least = np.inf
        for row in range(rows):
            least = min(least, cells[row, cell(coefficients, row, keys[i], columns)])
        values[i] = least
    return values


@inner
def mean_cost(
    counts: Array, times: Array, coefficients: Coefficients, key: Any, unknown: float
) -> Any:
    """``W/F`` at the cell of smallest F; ``unknown`` for a key no cell has seen."""
    rows, columns = counts.shape
    least = np.inf
    cost = unknown
    for row in range(rows):
        at = cell(coefficients, row, key, columns)
        if counts[row, at] < least:
            least = counts[row, at]
            cost = times[row, at] / least if least > 0 else unknown
    return cost


@entry
def mean_costs(
    counts: Array, times: Array, coefficients: Coefficients, keys: Keys, unknown: float
) -> Array:
    """``mean_cost`` of each key."""
    values = np.empty(len(keys))
    for i in range(len(keys)):
        values[i] = mean_cost(counts, times, coefficients, keys[i], unknown)
    return values


def shape(epsilon: float, delta: float) -> tuple[int, int]:
    """(rows, columns) for an error of ``epsilon`` with probability ``1 - delta``.

    >>> shape(0.05, 0.05)
    (3, 55)
    """
    if not (0 < epsilon < 1 and 0 < delta < 1):
        raise InvalidRecord(
            f"a sketch needs epsilon and delta between 0 and 1, got {epsilon} and {delta}"
        )
    return math.ceil(math.log(1 / delta)), math.ceil(math.e / epsilon)


def coefficients_of(rows: int, seed: int) -> Coefficients:
    """The hash functions of a seed: equal seeds share them, so that sketches can be merged."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(least, PRIME, rows, dtype=np.uint64) for least in (1, 0)])


class CountMin:
    """A sketch of sums per key.

    >>> s = CountMin(epsilon=0.05, delta=0.05, seed=1)
    >>> s.update(np.array([5, 9, 5], dtype=np.uint64))
    >>> s.query(np.array([5], dtype=np.uint64))[0] >= 2
    np.True_
    """

    def __init__(self, epsilon: float = 0.05, delta: float = 0.05, seed: int = 0) -> None:
        self.seed = seed
        self.cells: Array = np.zeros(shape(epsilon, delta))
        self.coefficients = coefficients_of(len(self.cells), seed)

    def update(self, keys: Keys, amounts: Array | float = 1.0) -> None:
        """Add an amount per key (1 each when none is given)."""
        add_all(
            self.cells,
            self.coefficients,
            keys,
            np.ascontiguousarray(np.broadcast_to(np.asarray(amounts, float), keys.shape)),
        )

    def query(self, keys: Keys) -> Array:
        """Sums per key: never too small."""
        return smallest(self.cells, self.coefficients, keys)

    def merge(self, other: CountMin) -> None:
        """Add another sketch of the same shape and seed."""
        if self.cells.shape != other.cells.shape or self.seed != other.seed:
            raise InvalidRecord(
                f"sketches of shape {self.cells.shape} seed {self.seed} and shape "
                f"{other.cells.shape} seed {other.seed} do not merge: "
                "they must share both"
            )
        self.cells += other.cells

    def to_bytes(self) -> bytes:
        return struct.pack("<qII", self.seed, *self.cells.shape) + self.cells.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> CountMin:
        seed, rows, columns = struct.unpack_from("<qII", data)
        sketch = cls.__new__(cls)
        sketch.seed = seed
        sketch.cells = np.frombuffer(data, dtype=float, offset=16).reshape(rows, columns).copy()
        sketch.coefficients = coefficients_of(rows, seed)
        return sketch


class CostSketch:
    """The pair (F, W) of OSG: how often a key came and how many seconds it took, in sketches with
    shared hashes.
    """

    def __init__(self, epsilon: float = 0.05, delta: float = 0.05, seed: int = 0) -> None:
        self.counts = CountMin(epsilon, delta, seed)
        self.times = CountMin(epsilon, delta, seed)

    def update(self, keys: Keys, seconds: Array) -> None:
        self.counts.update(keys)
        self.times.update(keys, seconds)

    @property
    def events(self) -> float:
        return float(self.counts.cells[0].sum())

    @property
    def mean_s(self) -> float:
        """Mean seconds per event over all keys; 0 before the first."""
        return float(self.times.cells[0].sum()) / self.events if self.events > 0 else 0.0

    def estimate(self, keys: Keys) -> Array:
        """Estimated seconds per event of each key; the overall mean for a key never seen."""
        c = self.counts
        return mean_costs(c.cells, self.times.cells, c.coefficients, keys, self.mean_s)

    def merge(self, other: CostSketch) -> None:
        self.counts.merge(other.counts)
        self.times.merge(other.times)

    def fade(self, factor: float) -> None:
        """Weigh the past by ``factor``: estimates stay, new evidence counts for more. Traces below
        1e-6 events are forgotten.
        """
        self.counts.cells *= factor
        self.times.cells *= factor
        faint = self.counts.cells < 1e-6
        self.counts.cells[faint] = 0.0
        self.times.cells[faint] = 0.0

    def to_bytes(self) -> bytes:
        counts = self.counts.to_bytes()
        return struct.pack("<I", len(counts)) + counts + self.times.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> CostSketch:
        (size,) = struct.unpack_from("<I", data)
        pair = cls.__new__(cls)
        pair.counts = CountMin.from_bytes(data[4 : 4 + size])
        pair.times = CountMin.from_bytes(data[4 + size :])
        return pair
