"""Flow: what a rate or a backlog at one operator becomes at the others, along the measured
selectivities.

Owns the way through the graph that every planner shares: splits, joins and loops. Knows nothing of
replicas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import Array, Forecast
from foretide.plan.queueing import traffic
from foretide.topology import Topology

ROUNDS = 50
"""How often events are followed round a loop."""


@dataclass(frozen=True)
class Flow:
    """A topology with the selectivity of every edge: ``selectivity[p, i]`` events reach i per event
    that p processes.

    The worked example of PA-SPS (figure 6): O1 splits 0.7/0.3, O2 passes 0.4 on, O3 everything.

    >>> from foretide.topology import Operator
    >>> branches = Operator("o2", ("o1",)), Operator("o3", ("o1",))
    >>> t = Topology((Operator("o1"), *branches, Operator("o4", ("o2", "o3"))))
    >>> flow = Flow(t, {("o1", "o2"): 0.7, ("o1", "o3"): 0.3, ("o2", "o4"): 0.4, ("o3", "o4"): 1.0})
    >>> {n: round(v, 2) for n, v in flow.through({"o1": 100.0}).items()}
    {'o1': 100.0, 'o2': 70.0, 'o3': 30.0, 'o4': 58.0}
    """

    topology: Topology
    selectivity: Mapping[tuple[str, str], float]

    @classmethod
    def measured(cls, topology: Topology, history: History) -> Flow:
        """From the recent past. An operator that events reach but that has not processed any yet
        raises NotReady; one that nothing reaches passes nothing on.
        """
        selectivities = {(p, c): history.selectivity(p, c) for p, c in topology.edges}
        flow = cls(topology, {edge: s or 0.0 for edge, s in selectivities.items()})
        reached = flow.theta()
        for (producer, consumer), s in selectivities.items():
            if s is None and reached[producer] > 0:
                raise NotReady(
                    f"'{producer}' has not processed an event yet: what it sends to '{consumer}' "
                    "is unknown"
                )
        return flow

    @property
    def routing(self) -> Array:
        """The selectivities as a matrix in the order of the topology's operators."""
        place = {n: i for i, n in enumerate(self.topology.names)}
        matrix = np.zeros((len(place), len(place)))
        for (p, c), s in self.selectivity.items():
            matrix[place[p], place[c]] = s
        return matrix

    def through(self, amounts: Mapping[str, float]) -> dict[str, float]:
        """What each operator gets in all when ``amounts`` enter: ``x_i = amount_i + sum_p s_{p->i}
        * x_p``.

        Rates at sources become rates everywhere (PA-SPS, equation 6; DRS, section III); backlogs
        become the work that still waits for i, its own and what upstream will send it (PA-SPS,
        equation 7, which prints theta_p where the share that reaches i is meant). A shared ancestor
        counts once per path, with that path's share. Raises Infeasible when a loop never dies out.
        """
        entering = np.array([[amounts.get(n, 0.0) for n in self.topology.names]])
        return dict(zip(self.topology.names, self.spread(entering)[0].tolist(), strict=True))

    def spread(self, entering: Array) -> Array:
        """``through`` for many amounts at once: rows are cases, columns operators in the topology's
        order. Without loops one pass from the sources down does it, which is linear in the edges.
        """
        if self.topology.has_loop:
            routing = self.routing
            return np.array([traffic(row, routing) for row in entering])
        place = {n: i for i, n in enumerate(self.topology.names)}
        reached = np.array(entering, dtype=float).T.copy()
        for name in self.topology.order:
            for consumer in self.topology.successors(name):
                share = self.selectivity.get((name, consumer), 0.0)
                if share:
                    reached[place[consumer]] += share * reached[place[name]]
        return np.asarray(reached.T)

    def left(self, waiting: Array, entering: Array, could: Array) -> Array:
        """Events that still wait at each operator after a time in which ``entering`` come from
        outside and each could process ``could``: what waits behind a slow operator does not reach
        the next ones. In the topology's order.

        >>> from foretide.topology import Operator
        >>> t = Topology((Operator("slow"), Operator("fast", ("slow",))))
        >>> flow = Flow(t, {("slow", "fast"): 1.0})
        >>> flow.left(np.array([5.0, 2.0]), np.array([10.0, 0.0]), np.array([9.0, 20.0]))
        array([6., 0.])
        """
        place = {n: i for i, n in enumerate(self.topology.names)}
        came, done = waiting + entering, np.zeros(len(place))
        for _ in range(ROUNDS if self.topology.has_loop else 1):
            before = done.copy()
            for name in self.topology.order:
                i = place[name]
                more = min(came[i], could[i]) - done[i]
                done[i] += more
                for consumer in self.topology.successors(name) if more else ():
                    came[place[consumer]] += self.selectivity.get((name, consumer), 0.0) * more
            if np.allclose(done, before):
                break
        return np.asarray(came - done)

    def theta(self) -> dict[str, float]:
        """Share of the sources' events that reach each operator (PA-SPS, equation 5): 1 at a source
        that is not in a loop.
        """
        return self.through(dict.fromkeys(self.topology.sources, 1.0))


def expected_rates(
    topology: Topology, history: History, forecasts: Mapping[str, Forecast]
) -> dict[str, Array]:
    """Events/s at every operator for each forecast step.

    Where every operator was forecast, those forecasts; where only sources were, or events go round
    in loops, the sources' loads through the measured flow. Raises NotReady when a source was not
    forecast.
    """
    missing = [n for n in topology.sources if n not in forecasts]
    if missing:
        raise NotReady(
            f"no forecast for {', '.join(missing)}: this planner needs one for every source"
        )
    steps = min(f.horizon for f in forecasts.values())
    ahead = {n: np.array(f.mean[:steps]) for n, f in forecasts.items()}
    if set(topology.names) <= set(ahead) and not topology.has_loop:
        return {n: ahead[n] for n in topology.names}
    flow = Flow.measured(topology, history)
    rates = {n: np.zeros(steps) for n in topology.names}
    for source in topology.sources:
        for name, visits in flow.through({source: 1.0}).items():
            rates[name] = rates[name] + visits * ahead[source]
    return rates
