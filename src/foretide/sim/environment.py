"""Simulation: an app under a load, as Probe and Actuator. To the loop that scales it, it looks like
Spark.

Time starts at 0 and moves only when the probe is read; windows end at multiples of ``window_s``. A
read at a window's end advances the simulation to it. The reconfiguration decides when a plan takes
effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from foretide.apps import App
from foretide.errors import ActuationError, InvalidConfig, NotReady, unknown
from foretide.load import Load
from foretide.model import Array, Host, Latency, Plan, Sample, Snapshot
from foretide.quantities import sojourn_sum_s
from foretide.sim.codes import grouping_code
from foretide.sim.events.batch import BatchCosts
from foretide.sim.events.queues import QueueModel
from foretide.sim.fluid.model import FluidModel
from foretide.sim.hosts import HostCosts, Hosts
from foretide.sim.latency import Latencies
from foretide.sim.reconfigure import CapacityRequests, Pool, Reconfiguration, ReplicaStep

Mode = Literal["events", "batch", "fluid"]


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How to simulate. None: the app's value.

    ``grouping`` is one name for all operators or a name per operator (shuffle for the rest).
    ``replicas`` are those at time 0 (by default each operator's minimum). Up to ``latency_limit``
    latencies are kept one by one, more in a fine histogram.
    """

    mode: Mode = "events"
    window_s: float | None = None
    seed: int = 1
    grouping: str | Mapping[str, str] = "shuffle"
    reconfiguration: Reconfiguration = field(default_factory=Pool)
    target_latency_s: float | None = None
    hosts: HostCosts = field(default_factory=HostCosts)
    batch: BatchCosts = field(default_factory=BatchCosts)
    replicas: Mapping[str, int] | None = None
    latency_limit: int = 20_000_000


class Model(Protocol):
    """What an engine must do. Operators are numbered in the topology's order; ``completion`` is
    that of the last measured window.
    """

    completion: Latency | None

    def advance(self, until: float) -> None: ...

    def resize(self, op: int, replicas: int) -> None: ...

    def pause(self, op: int, seconds: float) -> None:
        """Operator ``op`` pauses from now for ``seconds`` (when it is paused: for that much
        longer), until ``resume``.
        """
        ...

    def resume(self, op: int) -> None: ...

    def place(self, op: int, hosts: Sequence[int]) -> None: ...

    def measure(
        self, at: float, window_s: float, hosts: Mapping[int, str]
    ) -> tuple[dict[str, Sample], Latency | None, tuple[Host, ...]]: ...


class Simulation:
    """One simulated run of an app under a load. ``changes`` replace fields of the settings.

    >>> import numpy as np
    >>> from foretide.apps import app
    >>> load = Load("ten", np.full(20, 10.0))
    >>> environment = Simulation(app("twitter-linear"), load, window_s=10.0)
    >>> environment.apply(Plan({"parse": 2}))
    >>> seen = environment.read(10.0)
    >>> seen.samples["parse"].arrived, seen.samples["parse"].replicas
    (100.0, 2)
    """

    def __init__(
        self, app: App, load: Load, settings: SimulationSettings | None = None, **changes: Any
    ) -> None:
        self.app = app
        self.load = load
        self.settings = settings = replace(settings or SimulationSettings(), **changes)
        self.window_s = app.window_s if settings.window_s is None else settings.window_s
        self.target_latency_s = (
            app.target_latency_s if settings.target_latency_s is None else settings.target_latency_s
        )
        self.now = 0.0
        self.latencies = Latencies(settings.latency_limit)
        self._place = {n: i for i, n in enumerate(app.topology.names)}
        self._model = self._new_model()
        self._steps: list[ReplicaStep] = []
        self._paused_until = dict.fromkeys(app.topology.names, 0.0)
        self._hosts = Hosts(app.topology, app.hosts, settings.hosts) if app.hosts else None
        self._pending_move: tuple[float, Plan] | None = None
        self.start = {o.name: o.min_replicas for o in app.topology.operators}
        for name, replicas in (settings.replicas or {}).items():
            self.start[name] = self._checked(name, replicas)
        self._replicas = dict(self.start)
        self._requests = CapacityRequests()
        settings.reconfiguration.begin(self._requests, self.start)
        for name, replicas in self.start.items():
            self._model.resize(self._place[name], replicas)
            if self._hosts:
                self._model.place(
                    self._place[name], [self._hosts.index(h) for h in self._hosts.placement[name]]
                )

    def _new_model(self) -> Model:
        wanted = self.settings.grouping
        grouping = {
            n: wanted if isinstance(wanted, str) else wanted.get(n, "shuffle")
            for n in self.app.topology.names
        }
        for name in grouping.values():
            grouping_code(name)
        if self.settings.mode == "fluid":
            return FluidModel(
                self.app,
                self.load,
                grouping=grouping,
                target_s=self.target_latency_s,
                window_s=self.window_s,
                latencies=self.latencies,
            )
        return QueueModel(
            self.app,
            self.load,
            grouping=grouping,
            target_s=self.target_latency_s,
            seed=self.settings.seed,
            latencies=self.latencies,
            costs=self.settings.batch if self.settings.mode == "batch" else None,
        )

    def start_with(self, waiting: Mapping[str, tuple[int, float]]) -> None:
        """Let events wait at operators at time 0: how many, and at which rate they came. Only
        micro-batches can begin so.
        """
        if self.settings.mode != "batch" or self.now > 0 or not isinstance(self._model, QueueModel):
            raise InvalidConfig("only a simulation of micro-batches that has not begun can")
        for name, (events, rate) in waiting.items():
            self._model.put(self._place[name], events, rate)

    def _checked(self, name: str, replicas: int) -> int:
        if name not in self._place:
            raise unknown("operator", name, self._place)
        most = self.app.topology[name].max_replicas
        if not 1 <= replicas <= most:
            raise InvalidConfig(f"operator '{name}' takes 1 to {most} replicas, not {replicas}")
        return replicas

    @property
    def windows(self) -> int:
        """Whole windows in the load."""
        return int(self.load.duration_s / self.window_s * (1 + 1e-12))

    def latencies_ms(self) -> tuple[Array, Array | None]:
        """End-to-end latencies of all events that left, and how many events each stands for (None:
        one).
        """
        return self.latencies.values_ms(), self.latencies.weights()

    def forget_latencies(self) -> None:
        """Only events that leave from now on count."""
        self.latencies.clear()

    def apply(self, plan: Plan) -> None:
        """Set the targets; see the reconfiguration for when they hold."""
        for name, replicas in plan.replicas.items():
            try:
                self._checked(name, replicas)
            except InvalidConfig as error:
                raise ActuationError(str(error)) from error
        if self._hosts and (plan.placement or plan.release):
            self._pending_move = (
                self._hosts.ask(plan, self.now, {**self._replicas, **plan.replicas}),
                plan,
            )
        self._steps = self.settings.reconfiguration.targets(self._requests, plan, self.now)
        self._take_due()

    def read(self, now: float) -> Snapshot:
        """Advance to ``now`` and return what happened since the last read."""
        window_s = now - self.now
        if window_s <= 0:
            raise NotReady(f"nothing happened since {self.now:.1f} s: read a later instant")
        while (due := self._next_due()) <= now:
            self._advance(due)
            self._take_due()
        self._advance(now)
        names = self._hosts.names if self._hosts else {}
        samples, latency, hosts = self._model.measure(now, window_s, names)
        change = self.settings.reconfiguration
        return Snapshot(
            now,
            window_s,
            samples,
            hosts if self._hosts else None,
            latency,
            lead_s=change.lead_s,
            slots=change.slots(self._requests, now),
            completion=self._model.completion,
            sojourn_sum_s=sojourn_sum_s(samples),
        )

    def _advance(self, until: float) -> None:
        if until > self.now:
            self._model.advance(until)
            self.now = until

    def _next_due(self) -> float:
        due = [s.at for s in self._steps] + [t for t in self._paused_until.values() if t > self.now]
        if self._pending_move:
            due.append(self._pending_move[0])
        return min(due, default=float("inf"))

    def _take_due(self) -> None:
        """Everything that is to happen now."""
        while self._steps and self._steps[0].at <= self.now:
            step = self._steps.pop(0)
            for name, replicas in step.replicas.items():
                self._model.resize(self._place[name], replicas)
            self._replicas.update(step.replicas)
            if step.pause_s:
                self._pause(self.app.topology.names, step.pause_s)
        if self._hosts and self._pending_move and self._pending_move[0] <= self.now:
            plan, self._pending_move = self._pending_move[1], None
            moved = self._hosts.move(plan, self._replicas)
            for name in moved:
                self._model.place(
                    self._place[name], [self._hosts.index(h) for h in self._hosts.placement[name]]
                )
            if self._hosts.costs.migration_s:
                self._pause(moved, self._hosts.costs.migration_s)
        for name, until in self._paused_until.items():
            if until == self.now:
                self._model.resume(self._place[name])

    def _pause(self, names: Sequence[str], seconds: float) -> None:
        for name in names:
            until = max(self._paused_until[name], self.now)
            if self.now + seconds > until:
                self._model.pause(self._place[name], self.now + seconds - until)
                self._paused_until[name] = self.now + seconds
