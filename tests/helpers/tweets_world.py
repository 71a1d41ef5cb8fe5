"""A run worth looking at: a pipeline with a split, a join and a loop under a load with humps and a
burst, journalled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from foretide.autoscaler import Autoscaler, Cadence
from foretide.errors import NotReady
from foretide.guards import bounds, catch_up, cool_down, patience
from foretide.history import History
from foretide.journal import Journal, Run
from foretide.model import Array, Decision, Forecast, Latency, Mode, Plan, Sample, Snapshot
from foretide.plan.flow import Flow
from foretide.plan.need import known_service_time_s, need
from foretide.topology import Operator, Topology

WINDOW_S = 10.0
STARTED_AT = 1_760_000_000.0
TARGET_S = 2.0
TWEETS = Topology(
    (
        Operator("parse", max_replicas=12),
        Operator("spam", inputs=("parse", "retry"), max_replicas=16),
        Operator("topic", inputs=("spam",), max_replicas=16),
        Operator("user", inputs=("spam",), max_replicas=8, stateful=True),
        Operator("sentiment", inputs=("topic",), max_replicas=16),
        Operator("notify", inputs=("user",), max_replicas=8),
        Operator("retry", inputs=("sentiment",), max_replicas=4),
        Operator("store", inputs=("sentiment", "notify"), max_replicas=8),
    )
)
SERVICE_TIME_S = dict(
    zip(TWEETS.names, (0.012, 0.03, 0.022, 0.02, 0.034, 0.02, 0.02, 0.01), strict=True)
)
SHARE = {
    ("spam", "user"): 0.25,
    ("spam", "topic"): 0.75,
    ("sentiment", "retry"): 0.06,
    ("sentiment", "store"): 0.94,
}


def load(at: float) -> float:
    """Three humps and a burst, events/s, with a little noise that depends on the instant alone."""
    s = at - STARTED_AT
    humps = sum(
        h * math.exp(-(((s - c) / w) ** 2))
        for h, c, w in ((150, 700, 330), (230, 1900, 420), (130, 3050, 300))
    )
    burst = 170 if 2480 <= s < 2560 else 0
    noise = float(np.random.default_rng(int(s)).normal())
    return max(5.0, (45 + humps + burst) * (1 + 0.05 * noise))


class World:
    """Probe and Actuator: exact queues per window, selectivities, and latency from the queues along
    the longest way.
    """

    def __init__(
        self,
        topology: Topology,
        service_time_s: Mapping[str, float],
        load: Callable[[float], float],
        window_s: float = WINDOW_S,
        share: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        self.topology, self.service_time_s, self.load, self.window_s = (
            topology,
            service_time_s,
            load,
            window_s,
        )
        self.share = share or {}
        self.replicas = {
            n: 2 if n in topology.sources else topology[n].min_replicas for n in topology.names
        }
        self.backlog = dict.fromkeys(topology.names, 0.0)
        self.looped = dict.fromkeys(topology.edges, 0.0)

    def apply(self, plan: Plan) -> None:
        self.replicas.update(plan.replicas)

    def read(self, now: float) -> Snapshot:
        sent: dict[tuple[str, str], float] = {}
        samples: dict[str, Sample] = {}
        waited: dict[str, float] = {}
        for name in self.topology.order:
            inputs = [(p, name) for p in self.topology.predecessors(name)]
            offered = self.load(now) * self.window_s if name in self.topology.sources else None
            arrived = (offered or 0.0) + sum(
                sent[e] if e in sent else self.looped[e] for e in inputs
            )
            et, running = self.service_time_s[name], self.replicas[name]
            waiting = self.backlog[name] + arrived
            done = min(waiting, running * self.window_s / et)
            self.backlog[name] = waiting - done
            emitted = {
                c: done * self.share.get((name, c), 1.0) for c in self.topology.successors(name)
            }
            sent.update({(name, c): events for c, events in emitted.items()})
            busy = done * et
            pressure = busy / (running * self.window_s)
            own = (
                et
                + et * pressure**4 / max(0.04, 1.02 - pressure)
                + self.backlog[name] * et / running
            )
            waited[name] = own + max((waited.get(p, 0.0) for p, _ in inputs), default=0.0)
            samples[name] = Sample(
                arrived,
                done,
                self.backlog[name],
                running,
                emitted,
                busy_s=busy,
                offered=offered,
                sojourn_s=own,
            )
        self.looped.update(sent)
        typical_ms = 1000 * max(waited[n] for n in self.topology.sinks)
        left = sum(samples[n].processed for n in self.topology.sinks)
        share = (1 - math.tanh((typical_ms * 1.4 - 1000 * TARGET_S) / 800)) / 2
        spread = Latency(
            left, typical_ms * 1.1, typical_ms, typical_ms * 1.5, typical_ms * 2.1, left * share
        )
        return Snapshot(now, self.window_s, samples, latency=spread)


class Drift:
    """The line through the last eight windows, damped, with a band of twice its scatter: enough to
    draw.
    """

    def fit(self, series: Array) -> None:
        pass

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        y = recent[~np.isnan(recent)][-8:]
        if len(y) < 4:
            raise NotReady(f"{len(y)} windows are too few for a line")
        x = np.arange(len(y), dtype=float)
        slope, level = np.polyfit(x, y, 1)
        scatter = float(np.std(y - (slope * x + level))) + 1.0
        mean = level + slope * (len(y) - 1) + 0.6 * slope * np.arange(1, horizon + 1)
        return Forecast.of(mean, mean + 2 * scatter * np.sqrt(np.arange(1, horizon + 1)))


class Ahead:
    """Replicas for the upper end of the forecast, carried through the graph."""

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        flow = Flow.measured(topology, history)
        ahead = {n: max(f.upper or f.mean) for n, f in forecasts.items()}
        replicas, reasons = {}, {}
        for name, rate in flow.through(ahead).items():
            et = known_service_time_s(history, name)
            drain = history.backlog(name) / (6 * history.window_s)
            replicas[name] = need(rate + drain, et)
            reasons[name] = (
                f"up to {rate:.0f} events/s are forecast and {history.backlog(name):.0f} wait; one "
                f"replica does {1 / et:.0f}/s"
            )
        return Plan(replicas, reasons)


def loop_on(
    world: World,
    record: Callable[[Decision], None] = lambda d: None,
    mode: Mode | Callable[[], Mode] = "act",
    horizon: int = 6,
) -> Autoscaler:
    guards = (cool_down(20.0), catch_up(3.0), patience(4), bounds())
    return Autoscaler(
        world.topology, world, Ahead(), world, Drift, guards, Cadence(horizon=horizon), mode, record
    )


def steps(
    world: World, journal: Path, windows: int, mode: Mode | Callable[[], Mode] = "act"
) -> Iterator[Decision]:
    """Drive a journalled run; each step is made when it is asked for. One read in the middle fails,
    as reads do.
    """
    run = Run("tweets", "scripted", world.topology, world.window_s, STARTED_AT, "act", TARGET_S)
    with Journal(journal, run) as book:
        loop = loop_on(world, book.append, mode)
        for i in range(1, windows + 1):
            loop.probe = _Broken() if i == 100 else world
            yield loop.step(STARTED_AT + i * world.window_s)


class _Broken:
    def read(self, now: float) -> Snapshot:
        raise ConnectionError("the driver did not answer within 2 s")


def tweets(
    journal: Path, windows: int = 330, mode: Mode | Callable[[], Mode] = "act"
) -> list[Decision]:
    """The whole run at once."""
    return list(steps(World(TWEETS, SERVICE_TIME_S, load, share=SHARE), journal, windows, mode))


def many(operators: int) -> World:
    """A wide pipeline: one source, layers of seven, every operator fed by two of the layer
    before.
    """
    made = [Operator("in", max_replicas=64)]
    for i in range(1, operators):
        layer = [
            o.name for o in made if o.name != "in" and int(o.name[1:]) // 7 == (i // 7) - 1
        ] or ["in"]
        made.append(
            Operator(
                f"o{i}",
                inputs=tuple(dict.fromkeys((layer[i % len(layer)], layer[(i + 1) % len(layer)]))),
                max_replicas=64,
            )
        )
    topology = Topology(tuple(made))
    share = {
        (p, c): 1.6 / max(1, len(topology.successors(p))) / len(topology.predecessors(c))
        for p, c in topology.edges
    }
    return World(
        topology,
        {n: 0.03 + 0.01 * (i % 5) for i, n in enumerate(topology.names)},
        load,
        share=share,
    )
