"""For your tests: a clock that you advance, a probe that reads from a script, an actuator that
records plans, and a small environment without an engine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from foretide.errors import ActuationError, NotReady
from foretide.model import Plan, Sample, Snapshot
from foretide.plan.need import need
from foretide.topology import Topology


class ManualClock:
    """Time stands still until ``advance``; ``wait_until`` jumps to the instant at once."""

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def advance(self, seconds: float) -> None:
        self.at += seconds

    def follow(self) -> float:
        return 0.0

    def wait_until(self, at: float, stop: threading.Event) -> None:
        self.at = max(self.at, at)


class ScriptedProbe:
    """Returns one scripted snapshot (or raises one scripted exception) per read; raises NotReady
    after the last.
    """

    def __init__(self, script: Sequence[Snapshot | Exception]) -> None:
        self.script = list(script)

    def read(self, now: float) -> Snapshot:
        if not self.script:
            raise NotReady("the script is over")
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        return step


class RecordingActuator:
    """Keeps every plan; raises ActuationError while ``refusing`` is True."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.refusing = False

    def apply(self, plan: Plan) -> None:
        if self.refusing:
            raise ActuationError("the scripted actuator refuses")
        self.plans.append(plan)


class ScriptedEnvironment:
    """Probe and Actuator in one: ``load(at)`` events/s arrive at operators with fixed service
    times. Queues are exact, per window.

    Every operator passes each event on to all its consumers. Replicas change at the next window.
    Use it to run a loop without an engine; the simulator is the faithful twin.
    """

    def __init__(
        self,
        topology: Topology,
        service_time_s: Mapping[str, float],
        load: Callable[[float], float],
        window_s: float = 10.0,
    ) -> None:
        self.topology = topology
        self.service_time_s = service_time_s
        self.load = load
        self.window_s = window_s
        self.replicas = {n: topology[n].min_replicas for n in topology.names}
        self.backlog = dict.fromkeys(topology.names, 0.0)
        self._now = float("-inf")

    def apply(self, plan: Plan) -> None:
        for name, replicas in plan.replicas.items():
            if name not in self.replicas:
                raise ActuationError(f"there is no operator '{name}' in {self.topology.names}")
            if not 1 <= replicas <= (most := self.topology[name].max_replicas):
                raise ActuationError(
                    f"operator '{name}' takes 1 to {most} replicas, not {replicas}"
                )
        self.replicas.update(plan.replicas)

    def read(self, now: float) -> Snapshot:
        if now <= self._now:
            raise NotReady(f"nothing happened since {self._now:.1f} s: read a later instant")
        self._now = now
        processed: dict[str, float] = {}
        samples = {}
        for name in self.topology.order:
            offered = self.load(now) * self.window_s if name in self.topology.sources else None
            arrived = (offered or 0.0) + sum(
                processed.get(p, 0.0) for p in self.topology.predecessors(name)
            )
            service_time_s = self.service_time_s[name]
            waiting = self.backlog[name] + arrived
            done = min(waiting, self.replicas[name] * self.window_s / service_time_s)
            processed[name] = done
            self.backlog[name] = waiting - done
            emitted = dict.fromkeys(self.topology.successors(name), done)
            samples[name] = Sample(
                arrived,
                done,
                self.backlog[name],
                self.replicas[name],
                emitted,
                busy_s=done * service_time_s,
                offered=offered,
            )
        return Snapshot(now, self.window_s, samples)

    def needed(self, name: str, at: float) -> int:
        """Replicas that the load at this instant keeps busy."""
        return need(self.load(at), self.service_time_s[name])
