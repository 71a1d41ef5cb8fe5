"""How much the arrivals at each operator vary because of the paths that events take: splits, forks
and copies. Depends on the topology alone.
"""

from __future__ import annotations

import numpy as np

from foretide.model import Array


def simultaneous_arrivals(share: float) -> float:
    """Events that come at the same instant as an event sent along an edge: ``E[X(X - 1)] / E[X]``
    for its X copies, the whole part of the share and one more by the chance of its fraction.

    >>> [round(simultaneous_arrivals(share), 3) for share in (0.4, 1.0, 10.0, 2.5)]
    [0.0, 0.0, 9.0, 1.6]
    """
    whole = int(share)
    return (whole * (whole - 1) + 2 * whole * (share - whole)) / share if share > 0 else 0.0


def of_paths(shares: Array, splits: Array, external: Array) -> tuple[Array, Array]:
    """Per operator: the variation of its arrivals over long times, without those who come at the
    same instant; and how many those are.

    Outside events are a Poisson process, so an operator that gets X events of each sees a variation
    (variance of the count / its mean) of ``E[X^2] / E[X]``, whatever the queues between do to their
    order. The covariance of all counts follows from ``S = M (diag(external) + sum_p rate_p * G_p)
    M'`` with ``M = (1 - P')^-1`` and G_p the covariance of what one event at p becomes: a split
    sends it along one edge, any other operator decides edge by edge. ``shares[p, c]`` has no loop;
    ``splits[p]`` is true of a split.

    # both branches meet again: two of each event
    >>> fork = np.array([[0.0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    >>> long, at_once = of_paths(fork, np.zeros(4, bool), np.array([1.0, 0, 0, 0]))
    >>> long.round(9).tolist(), at_once.tolist()
    ([1.0, 1.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0])
    """
    reach = np.linalg.inv(np.eye(len(shares)) - shares.T)
    rates = reach @ external
    drawn = np.diag(external)
    for p, row in enumerate(shares):
        fraction = row % 1.0
        drawn = drawn + rates[p] * (
            np.diag(row) - np.outer(row, row) if splits[p] else np.diag(fraction * (1.0 - fraction))
        )
    varied = np.diag(reach @ drawn @ reach.T)
    flows = shares * rates[:, None]
    at_once = (flows * np.vectorize(simultaneous_arrivals)(shares)).sum(axis=0)
    known = rates > 0
    per = np.where(known, rates, 1.0)
    return np.where(known, np.maximum((varied - at_once) / per, 0.0), 1.0), np.where(
        known, at_once / per, 0.0
    )


def alike(shares: Array, scv_service: Array, long: Array, by_value: Array) -> Array:
    """What adds to the variation at a queue because services are alike: an event's returns and its
    copies.

    An event that comes back with chance p (``1 - 1/n`` for n visits) waits as one whose whole
    service varies by ``p + (1 - p)*cs`` (Takacs 1963, one replica), ``p*(1 - cs)`` more than one
    service does. Where a service time goes by the event's value, returns take as long as the first
    service did, ``p*(1 + cs)``, and so do copies: ``(long - 1)*cs``, with ``long`` the variation of
    all that come.

    >>> loop = np.array([[0.0, 1.0], [0.2, 0.0]])
    >>> alike(loop, np.array([0.0, 0.5]), np.ones(2), np.array([False, True])).round(3).tolist()
    [0.2, 0.3]
    """
    p = np.clip(1.0 - 1.0 / np.diag(np.linalg.inv(np.eye(len(shares)) - shares)), 0.0, 1.0)
    return np.where(
        by_value, p * (1.0 + scv_service) + (long - 1.0) * scv_service, p * (1.0 - scv_service)
    )
