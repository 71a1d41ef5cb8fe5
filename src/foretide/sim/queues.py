"""QueueModel: Python's end of the two compiled engines. It drives them, and turns what they counted into samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from foretide.apps import App
from foretide.load import Load
from foretide.model import Host, Latency, Sample
from foretide.sim import batch, engine
from foretide.sim.grouping import GROUPINGS, OSG, close_groups
from foretide.sim.latency import Latencies, summary
from foretide.sim.state import (
    AGE,
    ARRIVED,
    BASE,
    BATCHES,
    BATCHES_S,
    BUSY_S,
    CPU_S,
    DONE,
    DROPPED,
    GAP,
    GAP2,
    GAPS,
    HOST,
    IN_BATCH,
    JOB,
    LENGTH,
    NONE,
    OFFERED,
    PROCESSED,
    REPLICAS,
    SLOT_DONE,
    SOJOURN,
    TARGET_S,
    TASK_EVENTS,
    WITHIN,
    WORK2,
    WORK_S,
    WORKS,
    State,
    bin_middles_s,
    grown,
    new_state,
)

_MIDDLES_MS = bin_middles_s() * 1e3


class Compiled(NamedTuple):
    """The compiled steps of one engine."""

    run: Callable[[State, float], int]
    resize: Callable[[State, int, int], None]
    resume: Callable[[State, int], None]


EVENTS = Compiled(engine.run, engine.resize, engine.resume)
BATCHED = Compiled(batch.run, batch.resize, batch.resume)


class QueueModel:
    """Every event is simulated: by the event engine, or in micro-batches when ``costs`` of them are given."""

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
        codes = np.array([GROUPINGS[grouping[n]] for n in app.topology.names])
        self.state = new_state(app, load, codes, np.inf if target_s is None else target_s, seed, app.hosts or 0, OSG in codes)
        if costs is not None:
            costs.write(self.state, app)
        self._window: list[Any] = []
        self._edges = [(p, c) for p in app.topology.names for c in app.topology.successors(p)]

    def advance(self, until: float) -> None:
        while (stopped := self._engine.run(self.state, until)) != engine.FINISHED:
            if stopped == engine.POOL_FULL:
                self.state = grown(self.state)
            else:
                self._fetch()

    def _fetch(self) -> None:
        n = int(self.state.count[DONE])
        if n:
            self._window.append(self.state.done[:n].copy())
            self.state.count[DONE] = 0

    def resize(self, op: int, replicas: int) -> None:
        if self.state.op_i[op, REPLICAS] != replicas:
            self._engine.resize(self.state, op, replicas)

    def pause(self, op: int, seconds: float) -> None:
        engine.pause(self.state, op, seconds)

    def resume(self, op: int) -> None:
        self._engine.resume(self.state, op)

    def place(self, op: int, hosts: Sequence[int]) -> None:
        """Replica r sits on ``hosts[r % len(hosts)]`` from now on; a service under way moves with it."""
        s = self.state
        base, most = int(s.op_i[op, BASE]), self.app.topology.operators[op].max_replicas
        for slot in range(base, base + most):
            old, new = int(s.slot_i[slot, HOST]), hosts[(slot - base) % len(hosts)]
            if old != new and (s.slot_i[slot, JOB] != NONE or s.slot_f[slot, TASK_EVENTS] > 0):
                if old >= 0:
                    s.host_busy[old] -= 1
                s.host_busy[new] += 1
            s.slot_i[slot, HOST] = new

    def measure(
        self, at: float, window_s: float, hosts: Mapping[int, str]
    ) -> tuple[dict[str, Sample], Latency | None, tuple[Host, ...]]:
        """What the window saw; counting starts anew."""
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
        base = s.op_i[:, BASE]
        waiting = np.add.reduceat(s.slot_i[:, LENGTH] + (s.slot_i[:, JOB] != NONE), base) + s.op_i[:, IN_BATCH]
        samples = {
            name: self._sample(i, int(waiting[i]), emitted[name], window_s) for i, name in enumerate(self.app.topology.names)
        }
        seen = self._hosts(window_s, hosts)
        close_groups(s, window_s)
        for counted in (s.w_op, s.w_slot, s.w_edge, s.ages):
            counted.fill(0)
        return samples, summary(left, self.target_s), seen

    def _sample(self, i: int, backlog: int, emitted: dict[str, float], window_s: float) -> Sample:
        s = self.state
        w, o = s.w_op[i].tolist(), s.op_i[i].tolist()
        name = self.app.topology.names[i]
        first, replicas = o[BASE], o[REPLICAS]
        mine = s.w_slot[first : first + self.app.topology.operators[i].max_replicas]
        done = w[PROCESSED]
        return Sample(
            arrived=w[ARRIVED],
            processed=done,
            backlog=backlog,
            replicas=replicas,
            emitted=emitted,
            busy_s=float(mine[:, BUSY_S].sum()),
            offered=w[OFFERED] if name in self.app.topology.sources else None,
            dropped=w[DROPPED],
            sojourn_s=w[SOJOURN] / done if done else None,
            latency=self._ages(i, w) if done else None,
            replica_busy_s=tuple(mine[:replicas, BUSY_S].tolist()),
            replica_processed=tuple(mine[:replicas, SLOT_DONE].tolist()),
            scv_arrival=_scv(w[GAPS], w[GAP], w[GAP2]),
            scv_service=_scv(w[WORKS], w[WORK_S], w[WORK2]),
            batches=w[BATCHES] if self._engine is BATCHED else None,
            batch_s=w[BATCHES_S] / w[BATCHES] if w[BATCHES] else None,
        )

    def _ages(self, i: int, w: list[float]) -> Latency:
        cumulated = np.cumsum(self.state.ages[i])
        at = np.searchsorted(cumulated, np.ceil(np.array([0.5, 0.9, 0.99]) * w[PROCESSED]))
        p50, p90, p99 = _MIDDLES_MS[np.minimum(at, len(_MIDDLES_MS) - 1)].tolist()
        within = w[WITHIN] if np.isfinite(self.state.clock[TARGET_S]) else None
        return Latency(w[PROCESSED], w[AGE] / w[PROCESSED] * 1e3, p50, p90, p99, within)

    def _hosts(self, window_s: float, names: Mapping[int, str]) -> tuple[Host, ...]:
        s, found = self.state, []
        for host, name in names.items():
            loads: dict[str, float] = {}
            for i, op in enumerate(self.app.topology.names):
                first, most = int(s.op_i[i, BASE]), self.app.topology.operators[i].max_replicas
                here = s.slot_i[first : first + most, HOST] == host
                if here[: int(s.op_i[i, REPLICAS])].any():
                    loads[op] = float(s.w_slot[first : first + most, CPU_S][here].sum()) / window_s
            cores = float(s.host_cores[host])
            found.append(Host(name, sum(loads.values()) / cores, cores, loads))
        return tuple(found)


def _scv(n: float, total: float, squares: float) -> float | None:
    """Squared coefficient of variation: variance / mean^2; None from fewer than two values."""
    if n < 2 or total <= 0:
        return None
    mean = total / n
    return max(0.0, squares / n / mean**2 - 1.0)
