"""Random numbers in compiled code: one seeded stream per purpose, so that systems compared meet the
very same arrivals.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from foretide.jit import lean_inner as inner

ARRIVALS, WORK = 0, 4  # where the streams begin: what comes, and what becomes of it

_SHIFT_3, _SHIFT_11, _SHIFT_17, _SHIFT_19, _SHIFT_45, _SHIFT_56 = (
    np.uint64(n) for n in (3, 11, 17, 19, 45, 56)
)
_UNIT = 2.0**-53
_MANTISSA = np.uint64(2**53 - 1)

_LAYERS = 256
# where the ziggurat's lowest layer ends, and the area of each layer (Marsaglia and Tsang, 2000)
_TAIL = 7.69711747013104972
_AREA = 0.0039496598225815571993


def _ziggurat() -> tuple[Any, Any, Any]:
    """Widths of the layers per 2^-53, the share of each (in 2^-53) that lies wholly below the
    density, and heights of their tops.
    """
    x = np.zeros(_LAYERS + 1)
    x[0], x[1] = _AREA * math.exp(_TAIL), _TAIL
    for i in range(1, _LAYERS - 1):
        x[i + 1] = -math.log(math.exp(-x[i]) + _AREA / x[i])
    return x[:-1] * _UNIT, np.array(x[1:] / x[:-1] * 2.0**53, np.uint64), np.exp(-x)


_WIDTH, _SURE, _HEIGHT = _ziggurat()


def streams(seed: int) -> Any:
    """Initial states of both streams."""
    return np.random.SeedSequence(seed).generate_state(8, np.uint64)


@inner
def _bits(rng: Any, stream: int) -> Any:
    """64 random bits, the upper ones the best: xoshiro256+ (Blackman and Vigna, 2018)."""
    result = rng[stream] + rng[stream + 3]
    t = rng[stream + 1] << _SHIFT_17
    rng[stream + 2] ^= rng[stream]
    rng[stream + 3] ^= rng[stream + 1]
    rng[stream + 1] ^= rng[stream + 2]
    rng[stream] ^= rng[stream + 3]
    rng[stream + 2] ^= t
    rng[stream + 3] = (rng[stream + 3] << _SHIFT_45) | (rng[stream + 3] >> _SHIFT_19)
    return result


@inner
def uniform(rng: Any, stream: int) -> float:
    """In [0, 1): the upper 53 bits."""
    return float(_bits(rng, stream) >> _SHIFT_11) * _UNIT


@inner
def exponential(rng: Any, stream: int) -> Any:
    """Mean 1: the ziggurat method (Marsaglia and Tsang, 2000).

    256 layers of equal area cover the density. One is drawn, and a point in it; 97.8 % of the
    points need no look at the density itself. Beyond the lowest layer's end the distribution is the
    same again, that much further on.
    """
    further = 0.0
    while True:
        bits = _bits(rng, stream)
        layer = bits >> _SHIFT_56
        place = (bits >> _SHIFT_3) & _MANTISSA
        x = float(place) * _WIDTH[layer]
        if place < _SURE[layer]:
            return further + x
        if layer == 0:
            further += _TAIL
        elif _HEIGHT[layer] + uniform(rng, stream) * (
            _HEIGHT[layer + np.uint64(1)] - _HEIGHT[layer]
        ) < math.exp(-x):
            return further + x
