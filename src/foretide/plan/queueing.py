"""Queueing mathematics: Erlang's formulas, sojourn times of one operator, traffic and sojourn time
of a network.

Pure functions of numbers and arrays. Rates are events/s, times are seconds, ``k`` counts replicas
(servers) of one operator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foretide.errors import Infeasible
from foretide.model import Array


class Offered:
    """An operator by the load on it: events/s that arrive, and seconds that one takes."""

    __slots__ = ()
    rate: float
    service_time_s: float

    @property
    def offered(self) -> float:
        """Replicas that the rate keeps busy (erlangs)."""
        return self.rate * self.service_time_s

    @property
    def least(self) -> int:
        """``floor(offered) + 1``: the fewest replicas that keep up, with a finite queue."""
        return math.floor(self.offered) + 1


def erlang_b(k: int, offered: float) -> float:
    """Probability that an event finds all ``k`` servers of a loss system busy, ``offered = rate *
    service time`` erlangs.

    By the recursion ``B_0 = 1, B_n = a*B_{n-1} / (n + a*B_{n-1})``: every value stays in [0, 1], so
    k = 10,000 is as safe as k = 1, where powers and factorials overflow near 150.

    >>> round(erlang_b(2, 1.0), 3), round(erlang_b(10_000, 9_900.0), 4)
    (0.2, 0.0029)
    """
    blocked = 1.0
    for n in range(1, k + 1):
        carried = offered * blocked
        blocked = carried / (n + carried)
    return blocked


def waiting_share(blocked: float, k: int, offered: float) -> float:
    """Erlang C from Erlang B: ``C = B / (1 - rho*(1 - B))``; 1 when the servers cannot keep up."""
    if offered >= k:
        return 1.0
    return blocked / (1.0 - offered / k * (1.0 - blocked))


def erlang_c(k: int, offered: float) -> float:
    """Probability that an event has to wait in an M/M/k queue.

    >>> round(erlang_c(1, 0.5), 3), round(erlang_c(2, 1.0), 3), erlang_c(3, 3.0)
    (0.5, 0.333, 1.0)
    """
    return waiting_share(erlang_b(k, offered), k, offered)


def sojourn_s(k: int, rate: float, service_time_s: float, variability: float = 1.0) -> float:
    """Mean seconds queued and served: M/M/k, or GI/G/k by scaling the wait (DRS, equations 1 and
    2).

    ``E[T] = 1/mu + variability * C(k, a) / (k*mu - lambda)`` with ``mu = 1/service_time_s`` and ``a
    = lambda/mu``; infinite when ``k <= a``. ``variability = (scv_arrival + scv_service) / 2`` is
    the Allen-Cunneen factor; 1 is M/M/k.

    >>> sojourn_s(1, rate=5.0, service_time_s=0.1), sojourn_s(1, rate=10.0, service_time_s=0.1)
    (0.2, inf)
    """
    if service_time_s == 0:
        return 0.0
    offered = rate * service_time_s
    if k <= offered:
        return math.inf
    return service_time_s + variability * erlang_c(k, offered) * service_time_s / (k - offered)


def variability(scv_arrival: float | None, scv_service: float | None) -> float:
    """``(scv_arrival + scv_service) / 2``; what was not measured counts as 1, the exponential's."""
    return (
        (1.0 if scv_arrival is None else scv_arrival)
        + (1.0 if scv_service is None else scv_service)
    ) / 2.0


def traffic(external: npt.ArrayLike, routing: npt.ArrayLike) -> Array:
    """Arrival rate at every operator: the solution of ``lambda = external + P^T lambda`` (DRS,
    section III), loops included.

    ``routing[p, i]`` is what p sends to i per event it processes; it may exceed 1. Raises
    Infeasible when a loop feeds itself more than it lets out, since then no finite rates exist.

    >>> traffic([10.0, 0.0], [[0.0, 1.0], [0.2, 0.0]])
    array([12.5, 12.5])
    """
    p = np.asarray(routing, dtype=float)
    outside = np.asarray(external, dtype=float)
    # With P >= 0, rates that answer one event into every operator are all positive exactly when
    # every loop dies out.
    probe = np.ones((len(p), 1))
    try:
        solution = np.linalg.solve(np.eye(len(p)) - p.T, np.hstack([outside.reshape(-1, 1), probe]))
    except np.linalg.LinAlgError:
        solution = np.full((len(p), 2), -1.0)
    if not (solution[:, 1] >= 1 - 1e-9).all():
        raise Infeasible(
            "a loop of the topology sends back at least as many events as enter it: no number of "
            "replicas can keep up"
        )
    return np.maximum(solution[:, 0], 0.0)


def network_sojourn_s(
    rates: Sequence[float] | Array, sojourns_s: Sequence[float] | Array, load: float
) -> float:
    """Mean seconds an event of the outside load spends in the network: ``sum_i rate_i * sojourn_i /
    load`` (DRS, equation 3).

    Operators that nothing reaches do not count.

    >>> network_sojourn_s([10.0, 20.0], [0.1, 0.2], load=10.0)
    0.5
    """
    return float(sum(r * s for r, s in zip(rates, sojourns_s, strict=True) if r > 0) / load)
