"""Keys: 64-bit hashes of an event's key columns, and the function that mixes their bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]


def mixed(values: Keys) -> Keys:
    """The finalizer of splitmix64 (Steele, Lea and Flood 2014), a one-to-one mix of 64 bits."""
    x = values + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
