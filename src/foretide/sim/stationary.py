"""How many events a queue holds in the long run at a utilization: compiled formulas of numbers alone."""

from __future__ import annotations

import math
from typing import Any

from foretide.jit import lean_inner as inner

SHARED, SHUFFLE = 0, 1


@inner
def felt(rho: float, long: float, short: float, passed: float) -> Any:
    """The variation of the arrivals that a queue at utilization ``rho`` feels: ``w*long + (1 - w)*short``.

    Arrivals that went through a busier operator come no faster than it serves: bursts have waited there and do not wait again. Over
    long times they vary as what came from outside, over short ones as the service of the busiest operator passed, whose utilization
    is ``passed`` (0: none); a busier queue feels longer times (Whitt and You 2018). ``w = max(0, 1 - q(passed)/q(rho))`` with
    ``q(x) = x^2/(1 - x)`` makes single servers with fixed service times exact: the second waits as long as the slower of both would alone,
    less what the first waits (Avi-Itzhak 1965; Friedman 1965), so not at all when the first is the slower. With exponential service long
    and short are both 1 and every operator waits as if alone (Burke 1956).
    """
    if passed <= 0.0:
        return long
    if rho <= passed:
        return short
    w = 1.0 - passed * passed / (1.0 - passed) * (1.0 - rho) / (rho * rho)
    return w * long + (1.0 - w) * short


@inner
def stationary_level(rho: float, k: int, ca: float, cs: float, grouping: int) -> Any:
    """Mean events queued and served at utilization ``rho``; ``ca`` and ``cs`` are the squared variations of arrivals and service.

    One shared queue: ``k*rho + (ca + cs)/2 * C(k, k*rho) * rho / (1 - rho)`` (Erlang C, Allen-Cunneen). A queue per replica, dealt out
    in turn: with fixed service times event n waits for event n - k, as in one shared queue, so the arrivals' part is the same; the
    service's part is that of k queues GI/G/1, ``k * g * cs/2 * rho^2 / (1 - rho)``, with g by Kraemer and Langenbach-Belz for arrivals of
    variation ``ca/k``. Dealt out by chance (keys): k queues GI/G/1 whose arrivals vary by ``1 + (ca - 1)/k``.
    """
    if rho <= 0.0:
        return 0.0
    waits = 0.0
    if grouping <= SHUFFLE:
        blocked, offered = 1.0, k * rho
        for n in range(1, k + 1):
            blocked = offered * blocked / (n + offered * blocked)
        waits = blocked / (1.0 - rho * (1.0 - blocked)) * rho / (1.0 - rho)
        if grouping == SHARED:
            return k * rho + (ca + cs) / 2.0 * waits
    per = ca / k if grouping == SHUFFLE else 1.0 + (ca - 1.0) / k
    both = per + cs
    if both <= 0.0:
        return k * rho
    damped = math.exp(-2.0 * (1.0 - rho) * (1.0 - per) ** 2 / (3.0 * rho * both)) if per < 1.0 else 1.0
    alone = k * damped / 2.0 * rho * rho / (1.0 - rho)
    return k * rho + (ca / 2.0 * waits + cs * alone if grouping == SHUFFLE else both * alone)
