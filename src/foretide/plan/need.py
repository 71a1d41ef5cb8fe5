"""How many replicas a rate needs: the one formula that every planner shares."""

from __future__ import annotations

import math

from foretide.errors import NotReady
from foretide.history import History


def need(rate: float, service_time_s: float) -> int:
    """``max(1, ceil(rate * service_time_s))``: replicas that a rate keeps fully busy (BGElasor,
    section 4.2).

    A relative slack of 1e-9 keeps rounding from asking for one replica more than the exact
    quotient.

    >>> need(100.0, 0.02), need(100.1, 0.02), need(0.0, 0.02)
    (2, 3, 1)
    """
    exact = rate * service_time_s
    return max(1, math.ceil(exact * (1 - 1e-9)))


def known_service_time_s(history: History, name: str) -> float:
    """The measured service time, or NotReady: a planner never invents one."""
    measured = history.service_time_s(name)
    if measured is None:
        raise NotReady(
            f"operator '{name}' has not processed an event yet: its service time is unknown"
        )
    return measured
