"""A described app as a pipeline that runs on Spark: its operators wait or burn the described time.

The description (``foretide.apps``) is what the simulator draws events from, so the two can be
compared on every app. Splits, copies, loops, values and the timeout are those of the description.
An operator described as stateful is grouped by key; it keeps no state.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Literal

from foretide.apps import App
from foretide.apps.app import Service
from foretide.load import Load
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.pipeline import Pipeline

Work = Literal["wait", "burn"]
WORK: dict[str, Work] = {"wait": "wait", "burn": "burn"}
Event = dict[str, Any]
COLUMNS = "id long, at double, key long, value double"


def drawn_s(service: Service, key: int, rng: random.Random) -> float:
    """The service time of one event, by the description's law.

    >>> drawn_s(Service(0.055, "by-value", by_value_s=(0.01, 0.1)), 3, random.Random(1))
    0.1
    """
    if service.law == "by-value":
        return service.by_value_s[key % len(service.by_value_s)]
    if service.law == "exponential":
        return rng.expovariate(1 / service.mean_s)
    if service.law == "uniform":
        return service.mean_s * rng.uniform(1 - service.spread, 1 + service.spread)
    return service.mean_s


def receivers(shares: dict[str, float], splits: bool, rng: random.Random) -> list[str]:
    """The consumers that get a copy of an event, one entry per copy.

    A split sends it along one edge at most; otherwise every edge decides by itself and a share
    above 1 sends several copies.

    >>> receivers({"a": 2.0, "b": 0.0}, False, random.Random(1))
    ['a', 'a']
    >>> receivers({"a": 0.0, "b": 1.0}, True, random.Random(1))
    ['b']
    """
    if splits:
        at = rng.random()
        for consumer, share in shares.items():
            at -= share
            if at < 0:
                return [consumer]
        return []
    copies = {c: int(s) + (rng.random() < s % 1) for c, s in shares.items()}
    return [c for c, n in copies.items() for _ in range(n)]


def spend(seconds: float, work: Work) -> None:
    """Wait, which needs a slot, or burn, which needs a core."""
    if work == "wait":
        time.sleep(seconds)
        return
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def _function(app: App, name: str, work: Work) -> Callable[[Event], Any]:
    """What one operator does with an event. An event's value seeds what is drawn for it, and every
    copy carries a new one: a replay draws the same, a second pass through a loop does not.
    """
    service = app.service[name]
    shares = {c: app.share(name, c) for c in app.topology.successors(name)}
    splits = name in app.splits

    def serve(event: Event) -> Any:
        rng = random.Random(f"{name} {event['id']} {event['value']!r}")
        spend(drawn_s(service, event["key"], rng), work)
        if not shares:
            return event
        copies = [(c, {**event, "value": rng.random()}) for c in receivers(shares, splits, rng)]
        return copies if len(shares) > 1 else [copy for _, copy in copies]

    return serve


def described(app: App, load: Load, work: Work = "wait", trigger_s: float = 1.0) -> Pipeline:
    """The app under ``load`` as a pipeline. Sinks are the operators that nobody reads."""
    pipeline = Pipeline(app.name, trigger_s=trigger_s, timeout_s=app.timeout_s)
    topology = app.topology
    skew = app.values.zipf or 0.0
    for name in topology.sources:
        part = load.scaled(1 / len(topology.sources))
        pipeline.source(f"load-{name}", Generator(part, keys=app.values.count, skew=skew))
    for operator in topology.operators:
        consumers = topology.successors(operator.name)
        several = len(consumers) > 1
        inputs = [
            f"{p}:{operator.name}" if len(topology.successors(p)) > 1 else p
            for p in operator.inputs
        ]
        if operator.name in topology.sources:
            inputs.insert(0, f"load-{operator.name}")
        pipeline.operator(
            inputs=inputs,
            schema=None if several else COLUMNS,
            outputs=dict.fromkeys(consumers, COLUMNS) if several else None,
            name=operator.name,
            min_replicas=operator.min_replicas,
            max_replicas=operator.max_replicas,
            key="key" if operator.stateful else None,
            cost="key" if app.service[operator.name].law == "by-value" else None,
        )(_function(app, operator.name, work))
        if not consumers:
            pipeline.sink(f"out-{operator.name}", inputs=operator.name)
    return pipeline
