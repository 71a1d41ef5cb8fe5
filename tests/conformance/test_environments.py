"""One suite for every environment: simulated and scripted here, Spark in ``tests/spark``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from environments import CHAIN, CHECKS, EVERY_CHECK, Harness

from foretide.apps import App, Service
from foretide.load import Load
from foretide.model import Plan
from foretide.sim.environment import Simulation
from foretide.testing import ScriptedEnvironment

SERVICE_S = 0.004
APP = App(
    "chain",
    "two operators in a row",
    "a test",
    CHAIN,
    {name: Service(SERVICE_S, "fixed") for name in CHAIN.names},
    window_s=10.0,
)


class Windows:
    """An environment whose time moves by 10 s when it is read."""

    def __init__(self, environment: Simulation | ScriptedEnvironment) -> None:
        self.probe = self.actuator = environment
        self._now = 0.0

    def next_window(self) -> float:
        self._now += 10.0
        return self._now


def simulation(mode: str) -> Windows:
    return Windows(Simulation(APP, Load("steady", np.full(100, 80.0)), mode=mode))


def scripted() -> Windows:
    service_s = dict.fromkeys(CHAIN.names, SERVICE_S)
    return Windows(ScriptedEnvironment(CHAIN, service_s, lambda at: 80.0))


HARNESSES: dict[str, Callable[[], Harness]] = {
    "events": lambda: simulation("events"),
    "batch": lambda: simulation("batch"),
    "fluid": lambda: simulation("fluid"),
    "scripted": scripted,
}


@EVERY_CHECK
@pytest.mark.parametrize("name", HARNESSES)
def test_environment(name: str, check: Callable[[Harness], None]) -> None:
    check(HARNESSES[name]())


class Careless:
    """Breaks the contract: adds instead of setting, and takes any plan."""

    def __init__(self) -> None:
        self.windows = scripted()
        self.probe = self.windows.probe

    @property
    def actuator(self) -> Careless:
        return self

    def next_window(self) -> float:
        return self.windows.next_window()

    def apply(self, plan: Plan) -> None:
        assert isinstance(self.probe, ScriptedEnvironment)
        current = self.probe.replicas
        for name, wanted in plan.replicas.items():
            current[name] = current.get(name, 0) + wanted


@pytest.mark.parametrize("check", ["targets_are_absolute", "cannot_be_carried_out"])
def test_the_suite_notices_a_broken_actuator(check: str) -> None:
    (broken,) = [c for c in CHECKS if check in c.__name__]
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        broken(Careless())
