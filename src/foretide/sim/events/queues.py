"""QueueModel: the Python side of the two compiled engines. It drives them and turns their counters
into samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from foretide.apps import App
from foretide.balance import GROUPINGS
from foretide.load import Load
from foretide.model import Host, Latency, Sample
from foretide.quantities import latency
from foretide.sim.codes import CUSTOM, OSG, grouping_code
from foretide.sim.events import batch, engine
from foretide.sim.events.grouping import close_groups
from foretide.sim.events.python_groupings import PythonGroupings
from foretide.sim.events.state import (
    DONE,
    FANOUT,
    FREE_LEFT,
    NONE,
    TARGET_S,
    W_OPS,
    EngineState,
    bin_middles_s,
    grown,
    new_state,
)
from foretide.sim.latency import Latencies

_MIDDLES_MS = bin_middles_s() * 1e3


class Compiled(NamedTuple):
    """The compiled steps of one engine."""

    run: Callable[[EngineState, float], int]
    resize: Callable[[EngineState, int, int], None]
    resume: Callable[[EngineState, int], None]


EVENTS = Compiled(engine.run, engine.resize, engine.resume)
BATCHED = Compiled(batch.run, batch.resize, batch.resume)


class QueueModel:
    """Every event is simulated: by the event engine or, with ``costs``, in micro-batches."""

    def __init__(
        self,
        app: App,
        load: Load,
        *,
        grouping: Mapping[str, str],
        target_s: float | None,
        seed: int,
        latencies: Latencies,
        costs: batch.BatchCosts | None = None,
    ) -> None:
        self.app = app
        self.target_s = target_s
        self.latencies = latencies
        self._engine = EVENTS if costs is None else BATCHED
        self._trigger_s = None if costs is None else costs.trigger_s
        codes = np.array([grouping_code(grouping[n]) for n in app.topology.names])
        self.state = new_state(
            app,
            load,
            codes,
            np.inf if target_s is None else target_s,
            seed,
            app.hosts or 0,
            OSG in codes,
        )
        custom = {
            i: GROUPINGS.build(grouping[n])
            for i, n in enumerate(app.topology.names)
            if codes[i] == CUSTOM
        }
        self._python = PythonGroupings(custom, lambda: self.state, costs is not None)
        if custom:
            self.state = self.state._replace(python=self._python.addresses)
        if costs is not None:
            costs.write(self.state, app)
        self._window: list[Any] = []
        self.completion: Latency | None = None
        self._edges = [(p, c) for p in app.topology.names for c in app.topology.successors(p)]

    def put(self, op: int, events: int, rate: float) -> None:
        """Let ``events`` wait at an operator from the start (micro-batches only)."""
        while self.state.count[FREE_LEFT] < events + self.state.count[FANOUT]:
            self.state = grown(self.state)
        batch.put(self.state, op, events, rate)

    def advance(self, until: float) -> None:
        while (stopped := self._engine.run(self.state, until)) != engine.FINISHED:
            if stopped == engine.POOL_FULL:
                self.state = grown(self.state)
            else:
                self._fetch()
        self._python.check()

    def _fetch(self) -> None:
        n = int(self.state.count[DONE])
        if n:
            self._window.append(self.state.done[:n].copy())
            self.state.count[DONE] = 0

    def resize(self, op: int, replicas: int) -> None:
        if self.state.ops["replicas"][op] != replicas:
            self._engine.resize(self.state, op, replicas)
            self._python.check()

    def pause(self, op: int, seconds: float) -> None:
        engine.pause(self.state, op, seconds)

    def resume(self, op: int) -> None:
        self._engine.resume(self.state, op)

    def place(self, op: int, hosts: Sequence[int]) -> None:
        """Replica r sits on ``hosts[r % len(hosts)]`` from now on; a service under way moves with
        it.
        """
        s = self.state
        base, most = int(s.ops["base"][op]), self.app.topology.operators[op].max_replicas
        for slot in range(base, base + most):
            at = s.slots[slot]
            old, new = int(at["host"]), hosts[(slot - base) % len(hosts)]
            if old != new and (at["job"] != NONE or at["task_events"] > 0):
                if old != NONE:
                    s.host_busy[old] -= 1
                s.host_busy[new] += 1
            at["host"] = new

    def measure(
        self, at: float, window_s: float, hosts: Mapping[int, str]
    ) -> tuple[dict[str, Sample], Latency | None, tuple[Host, ...]]:
        """What was measured in the window; the counters restart."""
        s = self.state
        engine.close_window(s, at)
        self._fetch()
        left = np.concatenate([np.zeros(0, np.float32), *self._window])
        self._window.clear()
        if left.size:
            self.latencies.add(left)
        emitted: dict[str, dict[str, float]] = {n: {} for n in self.app.topology.names}
        for (p, c), n in zip(self._edges, s.w_edge.tolist(), strict=False):
            emitted[p][c] = n
        held = s.slots["length"] + (s.slots["job"] != NONE)
        waiting = np.add.reduceat(held, s.ops["base"]) + s.ops["in_batch"]
        samples = {
            name: self._sample(i, int(waiting[i]), emitted[name], window_s)
            for i, name in enumerate(self.app.topology.names)
        }
        seen = self._hosts(window_s, hosts)
        self.completion = self._completion()
        close_groups(s, window_s)
        self._python.close_window(window_s)
        for counted in (s.w_ops, s.w_slots, s.w_edge, s.ages, s.w_trees, s.tree_ages):
            counted[...] = 0
        return samples, latency(left, target_s=self.target_s), seen

    def _sample(self, i: int, backlog: int, emitted: dict[str, float], window_s: float) -> Sample:
        s = self.state
        w = dict(zip(W_OPS.fields or (), s.w_ops[i].tolist(), strict=True))
        name = self.app.topology.names[i]
        first, replicas = int(s.ops["base"][i]), int(s.ops["replicas"][i])
        mine = s.w_slots[first : first + self.app.topology.operators[i].max_replicas]
        done = w["processed"]
        return Sample(
            arrived=w["arrived"],
            processed=done,
            backlog=backlog,
            replicas=replicas,
            emitted=emitted,
            busy_s=float(mine["busy_s"].sum()),
            offered=w["offered"] if name in self.app.topology.sources else None,
            dropped=w["dropped"],
            sojourn_s=w["sojourn"] / done if done else None,
            latency=self._ages(i, w) if done else None,
            replica_busy_s=tuple(mine["busy_s"][:replicas].tolist()),
            replica_processed=tuple(mine["done"][:replicas].tolist()),
            scv_arrival=_scv(w["gaps"], w["gap"], w["gap2"]),
            scv_service=_scv(w["works"], w["work_s"], w["work2"]),
            batches=w["batches"] if self._engine is BATCHED else None,
            batch_s=w["batches_s"] / w["batches"] if w["batches"] else None,
            trigger_s=self._trigger_s if name in self.app.topology.sources else None,
        )

    def _ages(self, i: int, w: dict[str, float]) -> Latency:
        return self._latency(self.state.ages[i], w["processed"], w["age"], w["within"])

    def _completion(self) -> Latency | None:
        """How long the inputs that were completed in the window took: every one of them."""
        count, total_s, within = self.state.w_trees.tolist()
        return self._latency(self.state.tree_ages, count, total_s, within) if count else None

    def _latency(self, histogram: Any, count: float, total_s: float, within: float) -> Latency:
        cumulated = np.cumsum(histogram)
        at = np.searchsorted(cumulated, np.ceil(np.array([0.5, 0.9, 0.99]) * count))
        p50, p90, p99 = _MIDDLES_MS[np.minimum(at, len(_MIDDLES_MS) - 1)].tolist()
        known = within if np.isfinite(self.state.clock[TARGET_S]) else None
        return Latency(count, total_s / count * 1e3, p50, p90, p99, known)

    def _hosts(self, window_s: float, names: Mapping[int, str]) -> tuple[Host, ...]:
        s, measured = self.state, []
        for host, name in names.items():
            loads: dict[str, float] = {}
            for i, op in enumerate(self.app.topology.names):
                first, most = int(s.ops["base"][i]), self.app.topology.operators[i].max_replicas
                here = s.slots["host"][first : first + most] == host
                if here[: int(s.ops["replicas"][i])].any():
                    loads[op] = (
                        float(s.w_slots["cpu_s"][first : first + most][here].sum()) / window_s
                    )
            cores = float(s.host_cores[host])
            measured.append(Host(name, sum(loads.values()) / cores, cores, loads))
        return tuple(measured)


def _scv(n: float, total: float, squares: float) -> float | None:
    """Squared coefficient of variation: variance / mean^2; None from fewer than two values."""
    if n < 2 or total <= 0:
        return None
    mean = total / n
    return max(0.0, squares / n / mean**2 - 1.0)
