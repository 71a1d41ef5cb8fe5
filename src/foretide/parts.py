"""The protocols of the loop's parts. An implementation is one file, one test file and one registry
line.

Live and simulated runs differ only in the Probe and the Actuator; everything between is the same
code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from foretide.history import History
from foretide.model import Array, Forecast, Plan, Snapshot
from foretide.topology import Topology


class Probe(Protocol):
    """Measures the environment. A read must not change it."""

    def read(self, now: float) -> Snapshot:
        """The window that ends now. Raises NotReady while no window is over."""
        ...


class Forecaster(Protocol):
    """One load series in, its future out. One instance serves one series. Series may hold NaN where
    a read failed.
    """

    def fit(self, series: Array) -> None:
        """Learn from rates, oldest first. Models that need no training do nothing."""
        ...

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        """The next ``horizon`` rates after ``recent``. Raises NotReady on too short a history."""
        ...


class Planner(Protocol):
    """Decides replicas. Deterministic: the same history and forecasts give the same plan."""

    def plan(
        self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]
    ) -> Plan: ...


@runtime_checkable
class Monotone(Protocol):
    """A planner that promises: in the same situation, more load never gives an operator fewer
    replicas. The conformance suite holds every planner with this attribute to it.
    """

    monotone: bool


@runtime_checkable
class Remembering(Protocol):
    """A planner that also learns from the load before its first window."""

    def remember(self, past: Array) -> None:
        """The load of one source until the run began, events/s, oldest first; NaN: unknown."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A planner or a forecaster whose learned state can be saved and restored.

    A planner's state holds plain JSON values. A forecaster's may also hold numpy arrays (see
    ``forecast.state_file``); restored into a new instance with the same constants it gives the
    same forecasts. A forecaster that learns nothing needs neither method.
    """

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: Mapping[str, Any]) -> None: ...


class Actuator(Protocol):
    """Carries plans out.

    1. Targets are absolute: applying the same plan twice changes nothing the second time.
    2. It may be asynchronous: the truth comes back through the Probe.
    3. It raises ActuationError when it cannot, and then leaves replicas as they were.
    """

    def apply(self, plan: Plan) -> None: ...
