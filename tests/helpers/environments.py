"""What every environment must do, as checks: the contract of Probe and Actuator
(``foretide.parts``).

A harness wraps one environment; ``tests/conformance`` runs the checks in simulations and scripts,
``tests/spark/control`` on real Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import pytest

from foretide.errors import ActuationError, NotReady
from foretide.model import Plan, Snapshot
from foretide.parts import Actuator, Probe
from foretide.topology import Operator, Topology

CHAIN = Topology(
    (Operator("first", max_replicas=4), Operator("second", ("first",), max_replicas=4))
)


class Harness(Protocol):
    """One environment that runs CHAIN, every operator at one replica."""

    @property
    def probe(self) -> Probe: ...

    @property
    def actuator(self) -> Actuator: ...

    def next_window(self) -> float:
        """Let time pass and return the instant at which the window ends."""
        ...


def replicas(snapshot: Snapshot) -> dict[str, int]:
    return {name: sample.replicas for name, sample in snapshot.samples.items()}


def check_a_snapshot_is_whole(harness: Harness) -> None:
    now = harness.next_window()
    snapshot = harness.probe.read(now)
    assert snapshot.at == now
    assert snapshot.window_s > 0
    assert tuple(snapshot.samples) == CHAIN.names
    for name, sample in snapshot.samples.items():
        counts = (sample.arrived, sample.processed, sample.backlog)
        assert all(c is None or (c >= 0 and math.isfinite(c)) for c in counts), (name, counts)
        assert sample.busy_s is None or sample.busy_s >= 0
        assert set(sample.emitted) <= set(CHAIN.successors(name))
        assert (sample.offered is not None) == (name in CHAIN.sources), name
    assert replicas(snapshot) == {"first": 1, "second": 1}


def check_events_are_neither_lost_nor_invented(harness: Harness) -> None:
    arrived, processed = dict.fromkeys(CHAIN.names, 0.0), dict.fromkeys(CHAIN.names, 0.0)
    for _ in range(3):
        snapshot = harness.probe.read(harness.next_window())
        for name, sample in snapshot.samples.items():
            arrived[name] += sample.arrived or 0.0
            processed[name] += sample.processed
    for name, sample in snapshot.samples.items():
        assert arrived[name] > 0
        assert arrived[name] - processed[name] == pytest.approx(sample.backlog, abs=0.01), name


def check_an_instant_is_read_once(harness: Harness) -> None:
    now = harness.next_window()
    harness.probe.read(now)
    with pytest.raises(NotReady):
        harness.probe.read(now)
    assert harness.probe.read(harness.next_window()).window_s > 0


def check_targets_are_absolute_and_idempotent(harness: Harness) -> None:
    for target in (3, 3, 1, 4):
        harness.actuator.apply(Plan({"first": target}))
        harness.actuator.apply(Plan({"first": target}))
        snapshot = harness.probe.read(harness.next_window())
        assert replicas(snapshot) == {"first": target, "second": 1}


def check_a_plan_that_cannot_be_carried_out_changes_nothing(harness: Harness) -> None:
    harness.actuator.apply(Plan({"first": 2, "second": 3}))
    for impossible in ({"first": 5}, {"second": 1, "first": 5}, {"second": 1, "third": 1}):
        with pytest.raises(ActuationError, match=r"first|third"):
            harness.actuator.apply(Plan(impossible))
    snapshot = harness.probe.read(harness.next_window())
    assert replicas(snapshot) == {"first": 2, "second": 3}


CHECKS: tuple[Callable[[Harness], None], ...] = (
    check_a_snapshot_is_whole,
    check_events_are_neither_lost_nor_invented,
    check_an_instant_is_read_once,
    check_targets_are_absolute_and_idempotent,
    check_a_plan_that_cannot_be_carried_out_changes_nothing,
)
EVERY_CHECK = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
