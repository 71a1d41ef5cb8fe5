"""What the load of this window asks of every operator: a running estimate of service times and
selectivities, as arrays.

The same meaning as ``history.History`` and ``plan.flow.Flow`` give planners, kept up window by
window for a screen: the last ten windows in which an operator worked count.
"""

from __future__ import annotations

import numpy as np

from foretide.model import Array
from foretide.topology import Topology

REMEMBERED = 10


class Demand:
    """Need per operator: ``max(1, ceil(x_i * et_i))`` with ``x = offered + S^T x``, the offered
    rates carried along the measured selectivities, so that a queue that drains upstream is not
    mistaken for load. NaN where a service time was never measured."""

    def __init__(self, topology: Topology) -> None:
        n = len(topology.names)
        place = {name: i for i, name in enumerate(topology.names)}
        self._from = np.array([place[p] for p, _ in topology.edges], dtype=np.intp)
        self._to = np.array([place[c] for _, c in topology.edges], dtype=np.intp)
        before = {name: i for i, name in enumerate(topology.order)}
        self._downstream = (
            None
            if topology.has_loop
            else np.argsort([before[p] for p, _ in topology.edges], kind="stable").tolist()
        )
        self._busy, self._served = np.zeros((REMEMBERED, n)), np.zeros((REMEMBERED, n))
        self._done, self._sent = np.zeros((REMEMBERED, n)), np.zeros((REMEMBERED, len(self._from)))
        self._busy_at, self._done_at = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)

    def learn(self, processed: Array, busy_s: Array, sent: Array) -> None:
        """One window: events processed and busy seconds (NaN: not measured) per operator, events
        sent per edge.
        """
        worked = processed > 0
        ids = np.flatnonzero(worked)
        slot = self._done_at[ids] % REMEMBERED
        self._done[slot, ids] = processed[ids]
        edges = np.flatnonzero(worked[self._from])
        self._sent[self._done_at[self._from[edges]] % REMEMBERED, edges] = sent[edges]
        self._done_at[ids] += 1
        timed = np.flatnonzero(worked & ~np.isnan(busy_s))
        slot = self._busy_at[timed] % REMEMBERED
        self._busy[slot, timed], self._served[slot, timed] = busy_s[timed], processed[timed]
        self._busy_at[timed] += 1

    def need(self, offered: Array, arrived: Array) -> Array:
        """Replicas that these rates keep busy. A loop whose selectivities do not die out is judged
        by what arrived.
        """
        n = len(offered)
        done = self._done.sum(axis=0)[self._from]
        share = np.divide(
            self._sent.sum(axis=0), done, out=np.zeros(len(self._from)), where=done > 0
        )
        rates = self._carried(offered, share)
        if not (np.isfinite(rates).all() and (rates >= 0).all()):
            rates = arrived
        served = self._served.sum(axis=0)
        service_s = np.divide(
            self._busy.sum(axis=0), served, out=np.full(n, np.nan), where=served > 0
        )
        needed: Array = np.maximum(1.0, np.ceil(rates * service_s * (1 - 1e-9)))
        return needed

    def _carried(self, offered: Array, share: Array) -> Array:
        """``x = offered + S^T x``: edge by edge from the sources, or as linear equations where the
        graph has a loop.
        """
        if self._downstream is not None:
            rates, shares = offered.tolist(), share.tolist()
            for e in self._downstream:
                rates[self._to[e]] += shares[e] * rates[self._from[e]]
            return np.array(rates)
        n = len(offered)
        routing = np.zeros((n, n))
        routing[self._to, self._from] = share
        try:
            return np.asarray(np.linalg.solve(np.eye(n) - routing, offered), dtype=np.float64)
        except np.linalg.LinAlgError:
            return np.full(n, np.nan)
