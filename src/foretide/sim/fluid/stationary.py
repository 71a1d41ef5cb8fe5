"""How many events a queue holds in the long run at a utilization, and how unevenly they go on:
compiled formulas of numbers alone.
"""

from __future__ import annotations

import math
from typing import Any

from foretide.jit import lean_inner as inner

SHARED, SHUFFLE = 0, 1


@inner
def effective_scv(rho: float, cs: float, long: float, short: float, passed: float) -> Any:
    """The effective variation of the arrivals at a queue of utilization ``rho``: ``w*long + (1 -
    w)*short``.

    Arrivals that went through a busier operator come no faster than it serves: bursts have waited
    there and do not wait again. Over long times they vary as what came from outside, over short
    ones as the service of the busiest operator passed, whose utilization is ``passed`` (0: none).
    The busier a queue, the longer the times that matter (Whitt and You 2018). With ``u =
    q(passed)/q(rho)``, ``q(x) = x^2/(1 - x)``:

    - fixed service times: ``w = max(0, 1 - u)``. Single servers are then exact: the wait at the
      second is that of the slower of both alone, less the wait at the first (Avi-Itzhak 1965;
      Friedman 1965);
    - exponential service times: ``w = 1/(1 + u^1.5)``, fitted to simulations, as is the
      interpolation between the two by sqrt(cs).

    With exponential service everywhere long and short are both 1 and every operator waits as if
    alone (Burke 1956).
    """
    if passed <= 0.0 or rho < 1e-9:
        return long
    u = passed * passed / (1.0 - passed) * (1.0 - rho) / (rho * rho)
    spread = min(1.0, math.sqrt(cs))
    w = (1.0 - spread) * max(0.0, 1.0 - u) + spread / (1.0 + u * math.sqrt(u))
    return w * long + (1.0 - w) * short


@inner
def stationary_level(
    rho: float, k: int, ca: float, cs: float, simultaneous: float, grouping: int
) -> Any:
    """Mean events queued and served at utilization ``rho``; ``ca`` and ``cs`` are the squared
    variations of arrivals and service.

    One shared queue: ``k*rho + (ca + cs)/2 * C(k, k*rho) * rho / (1 - rho)`` (Erlang C,
    Allen-Cunneen). A queue per replica, round-robin: with fixed service times event n waits
    for event n - k, as in one shared queue, so the arrivals' part is the same; the service's part
    is that of k queues GI/G/1, ``k * g * cs/2 * rho^2 / (1 - rho)``, with g by Kraemer and
    Langenbach-Belz for arrivals of variation ``ca/k``. At random (keys): k queues GI/G/1
    whose arrivals vary by ``1 + (ca - 1)/k``.

    ``simultaneous`` (m below) is the number of other events that arrive at the same instant as an
    event; ``ca`` leaves them out, and is below 0 where such groups come regularly. When replicas
    are busy, an event waits for half of its group, and so do all events behind it; when they are
    idle, all but the first k wait. Interpolated by utilization: ``rho/(1 - rho) * (rho*m + (1 -
    rho)*max(0, m + 1 - k))/2``, exact for one replica. Mates have one key.
    """
    if rho <= 0.0:
        return 0.0
    waits, queue = 0.0, rho / (1.0 - rho)
    together = queue * (rho * simultaneous + (1.0 - rho) * max(0.0, simultaneous + 1.0 - k)) / 2.0
    if grouping <= SHUFFLE:
        blocked, offered = 1.0, k * rho
        for n in range(1, k + 1):
            blocked = offered * blocked / (n + offered * blocked)
        waits = blocked / (1.0 - rho * (1.0 - blocked)) * queue
        if grouping == SHARED:
            return k * rho + max(0.0, (ca + cs) / 2.0 * waits + together)
    per = max(0.0, (ca + simultaneous) / k if grouping == SHUFFLE else 1.0 + (ca - 1.0) / k)
    both = per + cs
    if both <= 0.0:
        return k * rho
    damped = (
        math.exp(-2.0 * (1.0 - rho) * (1.0 - per) ** 2 / (3.0 * rho * both)) if per < 1.0 else 1.0
    )
    alone = k * damped / 2.0 * rho * queue
    if grouping == SHUFFLE:
        return k * rho + max(0.0, ca / 2.0 * waits + together) + cs * alone
    return k * rho + both * alone + k * queue * simultaneous / 2.0


@inner
def departure_scv(rho: float, k: float, ca: float, cs: float) -> Any:
    """Variation of the gaps between departures: ``1 + (1 - rho^2)(ca - 1) + rho^2 (cs - 1) /
    sqrt(k)`` (Whitt 1983).
    """
    return max(0.0, 1.0 + (1.0 - rho * rho) * (ca - 1.0) + rho * rho * (cs - 1.0) / math.sqrt(k))


@inner
def sent_on(scv: float, share: float) -> Any:
    """Variation of the gaps on an edge: some events are not sent on by chance, or copies of each
    come at once, with gaps of 0.
    """
    return share * scv + 1.0 - share if share <= 1.0 else share * (scv + 1.0) - 1.0
