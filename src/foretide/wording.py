"""How numbers are written in sentences: percent, and nouns that agree with their count."""

from __future__ import annotations

import math


def percent(share: float) -> str:
    """A share in percent, rounded down so that it never reads better than it is: one decimal, two
    near 100 %.

    >>> percent(0.9996), percent(1.0), percent(0.52), percent(0.98999), percent(-0.1)
    ('99.96 %', '100 %', '52 %', '98.9 %', '-10 %')
    """
    digits = 2 if 0.99 <= share < 1 else 1
    scaled = math.floor(share * 100 * 10**digits + 1e-6) / 10**digits
    return f"{scaled:.{digits}f}".rstrip("0").rstrip(".") + " %"


def plural(count: float, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "replica"), plural(2, "replica"), plural(21000, "event")
    ('1 replica', '2 replicas', '21,000 events')
    """
    return f"{count:,.0f} {noun}" if round(count) == 1 else f"{count:,.0f} {noun}s"
