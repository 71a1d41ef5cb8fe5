"""One window as arrays over the operators, and the replicas that its load needs.

Owns the need that figures and dashboard share: computed window by window from what was measured up
to then, so that a page that follows a journal and a report that reads it afterwards agree. Service
times and selectivities are means over the last ten windows in which an operator worked, as
``history.History`` gives them to planners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from foretide.model import Array
from foretide.quantities import RECENT, Received, busy_replicas, from_outside
from foretide.topology import Topology


class Worked(Received, Protocol):
    """The fields of a sample that a window's arrays hold."""

    @property
    def processed(self) -> float: ...

    @property
    def backlog(self) -> float: ...

    @property
    def replicas(self) -> int: ...

    @property
    def busy_s(self) -> float | None: ...

    @property
    def dropped(self) -> float | None: ...

    @property
    def emitted(self) -> Mapping[str, float]: ...


@dataclass(frozen=True, slots=True, eq=False)
class WindowArrays:
    """One measured window. Counts per operator in the topology's order, ``sent`` per edge; busy
    seconds are NaN where they were not measured; ``offered`` is 0 where events only come from other
    operators.
    """

    seconds: float
    arrived: Array
    processed: Array
    backlog: Array
    replicas: Array
    busy_s: Array
    offered: Array
    sent: Array
    dropped: float

    @classmethod
    def of(cls, topology: Topology, seconds: float, samples: Mapping[str, Worked]) -> WindowArrays:
        ordered = [samples[n] for n in topology.names]
        arrived, processed, backlog, replicas, busy_s = np.array(
            [(s.arrived, s.processed, s.backlog, s.replicas, s.busy_s) for s in ordered],
            dtype=float,
        ).T
        sources = topology.sources
        offered = np.array(
            [from_outside(samples[n]) if n in sources else 0.0 for n in topology.names]
        )
        sent = np.array([samples[p].emitted.get(c, 0.0) for p, c in topology.edges], dtype=float)
        dropped = sum(s.dropped or 0.0 for s in ordered)
        return cls(seconds, arrived, processed, backlog, replicas, busy_s, offered, sent, dropped)

    @property
    def utilization(self) -> Array:
        """Busy seconds per replica second; NaN where not measured or without a replica."""
        room_s = self.replicas * self.seconds
        unknown: Array = np.full(len(room_s), np.nan)
        return np.asarray(np.divide(self.busy_s, room_s, out=unknown, where=room_s > 0))


class Routes:
    """Carries amounts along the edges of a topology: ``x = entering + S^T x``."""

    def __init__(self, topology: Topology) -> None:
        place = {name: i for i, name in enumerate(topology.names)}
        self.start = np.array([place[p] for p, _ in topology.edges], dtype=np.intp)
        self.end = np.array([place[c] for _, c in topology.edges], dtype=np.intp)
        order = {name: i for i, name in enumerate(topology.order)}
        self._downstream = (
            None
            if topology.has_loop
            else np.argsort([order[p] for p, _ in topology.edges], kind="stable").tolist()
        )

    def selectivity(self, processed: Array, sent: Array) -> Array:
        """Events sent per event processed, per edge; 0 where the producer never processed any."""
        done = processed[self.start]
        return np.divide(sent, done, out=np.zeros(len(self.start)), where=done > 0)

    def through(self, entering: Array, selectivity: Array) -> Array:
        """What reaches every operator: edge by edge from the sources, or as linear equations where
        the graph has a loop. NaN where a loop does not die out.
        """
        if self._downstream is not None:
            amounts, shares = entering.tolist(), selectivity.tolist()
            for e in self._downstream:
                amounts[self.end[e]] += shares[e] * amounts[self.start[e]]
            return np.array(amounts)
        n = len(entering)
        routing = np.zeros((n, n))
        routing[self.end, self.start] = selectivity
        try:
            amounts = np.asarray(np.linalg.solve(np.eye(n) - routing, entering), dtype=np.float64)
        except np.linalg.LinAlgError:
            return np.full(n, np.nan)
        finite = np.isfinite(amounts).all() and (amounts >= -1e-9).all()
        return np.maximum(amounts, 0.0) if finite else np.full(n, np.nan)


class ReplicaDemand:
    """The need of every operator, window by window: ``max(1, ceil(x_i * service_time_i))``.

    ``x`` are the rates from outside carried along the measured selectivities, so that a queue that
    drains upstream is not mistaken for load.
    """

    def __init__(self, topology: Topology) -> None:
        n, self._routes = len(topology.names), Routes(topology)
        edges = len(self._routes.start)
        self._busy, self._served = np.zeros((RECENT, n)), np.zeros((RECENT, n))
        self._done, self._sent = np.zeros((RECENT, n)), np.zeros((RECENT, edges))
        self._busy_at, self._done_at = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)

    def add(self, window: WindowArrays) -> Array:
        """Learn from a window; the replicas that it needed, NaN where a service time was never
        measured. A loop that does not die out is judged by what arrived.
        """
        self._learn(window)
        share = self._routes.selectivity(self._done.sum(axis=0), self._sent.sum(axis=0))
        rates = self._routes.through(window.offered / window.seconds, share)
        if np.isnan(rates).any():
            rates = window.arrived / window.seconds
        served = self._served.sum(axis=0)
        unknown = np.full(len(rates), np.nan)
        service_s = np.divide(self._busy.sum(axis=0), served, out=unknown, where=served > 0)
        return busy_replicas(rates * service_s)

    def _learn(self, window: WindowArrays) -> None:
        start, processed, busy_s = self._routes.start, window.processed, window.busy_s
        worked = processed > 0
        ids = np.flatnonzero(worked)
        self._done[self._done_at[ids] % RECENT, ids] = processed[ids]
        edges = np.flatnonzero(worked[start])
        self._sent[self._done_at[start[edges]] % RECENT, edges] = window.sent[edges]
        self._done_at[ids] += 1
        timed = np.flatnonzero(worked & ~np.isnan(busy_s))
        slot = self._busy_at[timed] % RECENT
        self._busy[slot, timed], self._served[slot, timed] = busy_s[timed], processed[timed]
        self._busy_at[timed] += 1
