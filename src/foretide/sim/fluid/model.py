"""FluidModel: months of load without events. Per window backlog, throughput and waiting from rates
and the queueing formulas.

What it gives up: chance within a window, keys, single replicas. Means of backlog and latency agree
with the event engine (see docs/simulator.md). Where replicas cannot keep up, events leave in the
order in which they came (``ages``); else percentiles within a window are those of a waiting time
that is exponential (Poisson arrivals) or uniform (a second's events at once).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from foretide.apps import App, Service
from foretide.load import Load
from foretide.model import Array, Host, Latency, Sample
from foretide.sim.codes import queue_code
from foretide.sim.fluid import flows
from foretide.sim.fluid.ages import Ages, latency_of
from foretide.sim.fluid.flows import Flows
from foretide.sim.fluid.variation import alike, of_paths
from foretide.sim.latency import Latencies


class FluidModel:
    """An app as a network of fluids. ``steps`` is the number of steps in a Poisson window. A fluid
    has no single inputs, so their completion is not known.
    """

    completion: Latency | None = None

    def __init__(
        self,
        app: App,
        load: Load,
        *,
        grouping: Mapping[str, str],
        target_s: float | None,
        window_s: float,
        latencies: Latencies,
    ) -> None:
        self.app = app
        self.target_s = target_s
        self.latencies = latencies
        self._place = {n: i for i, n in enumerate(app.topology.names)}
        self._leaving = [_leaving(app, n) for n in app.topology.names]
        self._stops = dict(zip(app.topology.names, stops(app, self._leaving), strict=True))
        self._least_s = sum(self._stops[n] * app.service_s(n) for n in app.topology.names)
        self._seats: dict[int, Sequence[int]] = {}
        self._poisson = app.arrivals == "poisson"
        self.flows = _new_flows(app, load, grouping, window_s)
        visits, op = app.visits(), self.flows.op
        for i, name in enumerate(app.topology.names):
            op[i, flows.STOPS], op[i, flows.LEAVING] = self._stops[name], self._leaving[i]
            op[i, flows.PER_INPUT] = self._stops[name] / max(visits[name], 1e-12)
        self._ages = Ages(self._least_s, float(self.flows.clock[flows.BATCH_S]))
        self._fractions, self._sent = (
            np.zeros_like(self.flows.window),
            np.zeros_like(self.flows.sent),
        )
        self._held = np.zeros(len(self._place))

    def advance(self, until: float) -> None:
        flows.advance(self.flows, until)

    def resize(self, op: int, replicas: int) -> None:
        self.flows.op[op, flows.REPLICAS] = replicas
        self._seat(op)

    def pause(self, op: int, seconds: float) -> None:
        self.flows.op[op, flows.PAUSED] = 1

    def resume(self, op: int) -> None:
        self.flows.op[op, flows.PAUSED] = 0

    def place(self, op: int, hosts: Sequence[int]) -> None:
        self._seats[op] = hosts
        self._seat(op)

    def _seat(self, op: int) -> None:
        hosts = self._seats.get(op, ())
        self.flows.seats[op] = 0
        for r in range(int(self.flows.op[op, flows.REPLICAS]) if hosts else 0):
            self.flows.seats[op, hosts[r % len(hosts)]] += 1

    def measure(
        self, at: float, window_s: float, hosts: Mapping[int, str]
    ) -> tuple[dict[str, Sample], Latency | None, tuple[Host, ...]]:
        f = self.flows
        window, op = f.window.tolist(), f.op.tolist()
        counted, sent = (a.tolist() for a in self._count())
        names = self.app.topology.names
        samples: dict[str, Sample] = {}
        sojourn_s = 0.0
        for i, name in enumerate(names):
            w, o, whole = window[i], op[i], counted[i]
            stay_s = (
                max(o[flows.SERVICE_S], w[flows.AREA] / w[flows.PROCESSED])
                if w[flows.PROCESSED] > 0
                else None
            )
            sojourn_s += self._stops[name] * (stay_s or 0.0)
            samples[name] = Sample(
                arrived=whole[flows.ARRIVED],
                processed=whole[flows.PROCESSED],
                backlog=float(self._held[i]),
                replicas=int(o[flows.REPLICAS]),
                emitted={c: sent[i][self._place[c]] for c in self.app.topology.successors(name)},
                busy_s=w[flows.BUSY_S],
                offered=whole[flows.OFFERED] if name in self.app.topology.sources else None,
                dropped=whole[flows.DROPPED],
                sojourn_s=stay_s,
                scv_arrival=o[flows.SCV_ARRIVAL] if self._poisson else None,
                scv_service=o[flows.SCV_SERVICE],
            )
        latency = self._latency(max(0.0, sojourn_s - self._least_s))
        seen = self._hosts(window_s, hosts) if hosts else ()
        f.window.fill(0)
        f.sent.fill(0)
        f.host_cpu_s.fill(0)
        return samples, latency, seen

    def _count(self) -> tuple[Array, Array]:
        """Whole events of the window and along the edges, fractions carried on: a planner that
        rounds up must not see 2.00000 replicas where events come to 1.99999 or 2.00001. Nothing is
        lost: what is held grows by what arrived less what was done or dropped.
        """
        self._fractions += self.flows.window
        self._sent += self.flows.sent
        whole, sent = np.floor(self._fractions + 1e-6), np.floor(self._sent + 1e-6)
        whole[:, flows.ARRIVED] = whole[:, flows.OFFERED] + sent.sum(axis=0)
        self._held += whole[:, flows.ARRIVED]
        for gone in (flows.DROPPED, flows.PROCESSED):
            whole[:, gone] = np.minimum(whole[:, gone], self._held)
            self._held -= whole[:, gone]
        self._fractions -= whole
        self._sent -= sent
        return whole, sent

    def _latency(self, wait_s: float) -> Latency | None:
        """Of the events that left, from the rows since the last measurement, which are emptied.
        ``wait_s`` is their mean wait where replicas keep up.
        """
        f = self.flows
        rows = f.rows[: int(f.clock[flows.ROW]) + 1]
        rows = rows[rows[:, flows.R_TIME] > 0]
        f.rows.fill(0)
        f.clock[flows.ROW] = 0
        if not len(rows):
            return None
        ages_s, events = self._ages.left(rows, wait_s)
        if (latency := latency_of(ages_s, events, self.target_s)) is not None:
            self.latencies.add_weighted(ages_s, events)
        return latency

    def _hosts(self, window_s: float, names: Mapping[int, str]) -> tuple[Host, ...]:
        f, measured = self.flows, []
        for host, name in names.items():
            loads = {
                n: float(f.host_cpu_s[i, host]) / window_s
                for i, n in enumerate(self.app.topology.names)
                if f.seats[i, host] > 0
            }
            cores = float(f.host_cores[host])
            measured.append(Host(name, sum(loads.values()) / cores, cores, loads))
        return tuple(measured)


def _leaving(app: App, name: str) -> float:
    """Chance that an event leaves the topology after this operator: nothing is emitted for it."""
    shares = [app.share(name, c) for c in app.topology.successors(name)]
    if name in app.splits:
        return max(0.0, 1.0 - sum(shares))
    return float(np.prod([max(0.0, 1.0 - s) for s in shares]))


def stops(app: App, leaving: Sequence[float]) -> list[float]:
    """How often the events that leave were at each operator, on average: ``e_i = v_i * (N l)_i / (v
    l)``.

    v are the visits per outside event, l the chances to leave after each operator, ``N = (1 -
    P)^-1``: an event at i leaves as (N l)_i events, which all were there. Without copies these are
    the visits; of ten copies each has its own way, and counts for itself.
    """
    visits = np.array(list(app.visits().values()))
    offspring = np.linalg.solve(np.eye(len(visits)) - app.shares(), np.array(leaving))
    out = float(visits @ np.array(leaving))
    return [float(e) for e in (visits * offspring / out if out > 0 else visits)]


def scv_service(service: Service, app: App) -> float:
    """Squared coefficient of variation of a service time, by its law."""
    if service.law == "by-value":
        chances, times = app.values.probabilities(), np.resize(service.by_value_s, app.values.count)
        return float(chances @ times**2 / (chances @ times) ** 2 - 1)
    return {"fixed": 0.0, "exponential": 1.0, "uniform": service.spread**2 / 3}[service.law]


def _new_flows(app: App, load: Load, grouping: Mapping[str, str], window_s: float) -> Flows:
    topology = app.topology
    names, place = topology.names, {n: i for i, n in enumerate(topology.names)}
    turn = {n: i for i, n in enumerate(topology.order)}
    ops, hosts = len(names), app.hosts or 0
    shares, back = app.shares(), np.zeros((ops, ops))
    for p, c in topology.edges:
        back[place[p], place[c]] = turn[p] >= turn[c]
    op = np.zeros((ops, flows.OP))
    for i, n in enumerate(names):
        op[i, [flows.REPLICAS, flows.SERVICE_S, flows.SCV_ARRIVAL]] = (
            topology[n].min_replicas,
            app.service_s(n),
            1.0,
        )
        op[i, [flows.SCV_SERVICE, flows.GROUPING]] = (
            scv_service(app.service[n], app),
            queue_code(grouping[n]),
        )
    long, at_once = of_paths(
        np.where(back > 0, 0.0, shares), np.array([n in app.splits for n in names]), app.external()
    )
    op[:, flows.LONG], op[:, flows.SIMULTANEOUS], op[:, flows.SHORT] = long, at_once, 1.0
    op[:, flows.ALIKE] = alike(
        shares,
        op[:, flows.SCV_SERVICE],
        long + at_once,
        np.array([app.service[n].law == "by-value" for n in names]),
    )
    clock = _clock(app, load, window_s)
    return Flows(
        clock,
        load.rates(),
        np.array([place[n] for n in topology.sources]),
        np.array([place[n] for n in topology.order]),
        shares,
        back,
        op,
        np.zeros((ops, flows.W_OP)),
        np.zeros((ops, ops)),
        np.zeros(ops),
        np.zeros((ops, flows.BINS)),
        np.zeros((ops, flows.BINS)),
        np.zeros((ops, hosts)),
        np.full(hosts, app.host_cores),
        np.zeros((ops, hosts)),
        np.zeros((_rows(clock, window_s), flows.W_ROW)),
    )


def _rows(clock: Array, window_s: float) -> int:
    """Rows for a window, and as many again for pauses that cut its steps."""
    row_s = float(clock[flows.BATCH_S] or clock[flows.STEP_S])
    return 64 + 2 * math.ceil(window_s / row_s)


def _clock(app: App, load: Load, window_s: float) -> Array:
    """Step and batch length, the load's interval, the timeout."""
    poisson = app.arrivals == "poisson"
    batch_s = 0.0 if poisson else load.batch_s
    clock = np.zeros(flows.CLOCK)
    step_s = (
        min(window_s / 10, load.interval_s, (app.timeout_s or np.inf) / 15)
        if poisson
        else batch_s / 20
    )
    if app.topology.has_loop:
        # What a loop feeds back waits for the next step, so the step must be short beside a
        # service.
        shortest_s = min(app.service_s(n) for n in app.topology.names)
        step_s = min(step_s, max(window_s / 2000, shortest_s / 4))
    clock[[flows.STEP_S, flows.BATCH_S]] = step_s, batch_s
    clock[[flows.INTERVAL_S, flows.TIMEOUT_S]] = (
        load.interval_s,
        np.inf if app.timeout_s is None else app.timeout_s,
    )
    return clock
