"""Random numbers in compiled code: one seeded stream per purpose, so that systems compared meet the very same arrivals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from foretide.jit import lean_inner as inner

ARRIVALS, WORK = 0, 1  # streams: what comes, and what becomes of it

_SHIFT_17, _SHIFT_45, _SHIFT_19, _SHIFT_11 = np.uint64(17), np.uint64(45), np.uint64(19), np.uint64(11)
_UNIT = 2.0**-53


def streams(seed: int) -> Any:
    """Initial states of both streams."""
    return np.random.SeedSequence(seed).generate_state(8, np.uint64).reshape(2, 4)


@inner
def uniform(rng: Any, stream: int) -> float:
    """In [0, 1): xoshiro256+ (Blackman and Vigna, 2018), the upper 53 bits."""
    result = rng[stream, 0] + rng[stream, 3]
    t = rng[stream, 1] << _SHIFT_17
    rng[stream, 2] ^= rng[stream, 0]
    rng[stream, 3] ^= rng[stream, 1]
    rng[stream, 1] ^= rng[stream, 2]
    rng[stream, 0] ^= rng[stream, 3]
    rng[stream, 2] ^= t
    rng[stream, 3] = (rng[stream, 3] << _SHIFT_45) | (rng[stream, 3] >> _SHIFT_19)
    return float(result >> _SHIFT_11) * _UNIT


@inner
def exponential(rng: Any, stream: int) -> float:
    """Mean 1."""
    return -math.log(1.0 - uniform(rng, stream))
