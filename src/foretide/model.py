"""The records that flow through the loop.

Owns what a measurement, a forecast, a plan and a decision are; every record is frozen and checks
itself when built. It knows nothing of clocks, files, Spark or the simulator. Counts are events in a
window (floats, since the fluid simulator counts fractions), rates are events per second, instants
are float UTC seconds. What was not measured is ``None``, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from foretide.errors import InvalidRecord
from foretide.topology import Topology

Array = npt.NDArray[np.float64]
Mode = Literal["advise", "act"]
Sketch = tuple[int, tuple[float, ...]]
"""The first key of a latency sketch and the events per key: see ``foretide.sketch``."""
Outcome = Literal["observed", "waiting", "unchanged", "advised", "applied", "failed"]


def _check_count(record: str, name: str, value: float | None) -> None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise InvalidRecord(
            f"{record}.{name} is {value}: it must be a finite number >= 0, or None when it was not "
            "measured"
        )


def _check_known(record: str, name: str, value: float | None) -> None:
    if value is None:
        raise InvalidRecord(
            f"{record}.{name} is None: this count is always known; raise NotReady from the probe "
            "while it is not"
        )
    _check_count(record, name, value)


def whole(name: str, value: object, least: int) -> int:
    """A whole number of at least ``least`` as a plain int, also from numpy.

    >>> whole("replicas", np.int64(3), 1)
    3
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InvalidRecord(f"{name} is {value!r}: it must be a whole number")
    if value < least:
        raise InvalidRecord(f"{name} is {value}: it must be at least {least}")
    return int(value)


@dataclass(frozen=True, slots=True)
class Latency:
    """How long events took, over ``count`` events; ``within`` of them met the latency target when
    one is known. ``sketch`` holds the distribution where it is to be merged over windows.
    """

    count: float
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    within: float | None = None
    sketch: Sketch | None = None

    def __post_init__(self) -> None:
        for name in ("count", "mean_ms", "p50_ms", "p90_ms", "p99_ms", "within"):
            _check_count("Latency", name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class StageRun:
    """One stage of a micro-batch: its tasks, their seconds in all, and the seconds that the batch
    waited for it. ``tasks`` 0: not known, the work is taken as divisible.
    """

    tasks: int
    task_s: float
    wall_s: float

    def __post_init__(self) -> None:
        for name in ("tasks", "task_s", "wall_s"):
            _check_count("StageRun", name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class BatchRun:
    """One micro-batch that ended: how many events it took in, how long it lasted, on how many task
    slots (None: the number changed meanwhile), by stage where known. ``left`` are the events that
    its sources had and a limit per batch did not let in; None when no source reports that.
    """

    started_at: float
    duration_s: float
    events: float
    slots: float | None = None
    stages: tuple[StageRun, ...] = ()
    left: float | None = None

    def __post_init__(self) -> None:
        for name in ("duration_s", "events", "slots", "left"):
            _check_count("BatchRun", name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class Sample:
    """One operator in one window.

    ``offered`` are the events from outside (sources only); ``arrived`` includes them and what other
    operators sent. ``emitted`` is per outgoing edge. ``sojourn_s`` is the mean time an event spent
    queued and served here; ``latency`` the age of events, since they entered the topology, when
    they were done here. ``scv_*`` are squared coefficients of variation. Where events are worked
    off in micro-batches, ``batches`` ended in the window and took ``batch_s`` seconds each on
    average, ``fixed_s`` beyond the work of its slowest task (of each part, where one ran in parts);
    ``batch_runs`` are these batches one by one and ``trigger_s`` is the time between two that the
    query asks for, where known. Replicas beyond ``max_parallelism`` add nothing (a source has only
    so many partitions); None when no such limit is known. ``state_rows`` and ``state_bytes`` are
    what a stateful operator keeps, ``watermark_at`` the event time up to which it is complete.
    ``phases`` are those of the grouping that the window's batches ran in, one after another.
    """

    arrived: float
    processed: float
    backlog: float
    replicas: int
    emitted: Mapping[str, float] = field(default_factory=dict)
    busy_s: float | None = None
    offered: float | None = None
    dropped: float | None = None
    sojourn_s: float | None = None
    latency: Latency | None = None
    replica_busy_s: tuple[float, ...] | None = None
    replica_processed: tuple[float, ...] | None = None
    scv_arrival: float | None = None
    scv_service: float | None = None
    batches: float | None = None
    batch_s: float | None = None
    fixed_s: float | None = None
    max_parallelism: int | None = None
    batch_runs: tuple[BatchRun, ...] = ()
    trigger_s: float | None = None
    state_rows: float | None = None
    state_bytes: float | None = None
    watermark_at: float | None = None
    phases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("arrived", "processed", "backlog"):
            _check_known("Sample", name, getattr(self, name))
        for name in (
            "busy_s",
            "offered",
            "dropped",
            "sojourn_s",
            "scv_arrival",
            "scv_service",
            "batches",
            "batch_s",
            "fixed_s",
            "trigger_s",
            "state_rows",
            "state_bytes",
        ):
            _check_count("Sample", name, getattr(self, name))
        for edge, count in self.emitted.items():
            _check_count("Sample", f"emitted[{edge!r}]", count)
        object.__setattr__(self, "replicas", whole("Sample.replicas", self.replicas, 0))
        if self.max_parallelism is not None and self.max_parallelism < 1:
            raise InvalidRecord(
                f"Sample.max_parallelism is {self.max_parallelism}: it must be >= 1, or None when "
                "no limit is known"
            )


@dataclass(frozen=True, slots=True)
class Host:
    """One machine (on Spark: an executor): ``loads`` is the CPU each operator uses on it, in the
    unit of ``capacity`` (cores).

    Side resources are known by name ("memory_bytes", "network_bytes_s"): ``limits`` is what the
    host has of each, ``uses`` what each operator takes of it.
    """

    name: str
    utilization: float
    capacity: float = 1.0
    loads: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    uses: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_count("Host", "utilization", self.utilization)
        _check_count("Host", "capacity", self.capacity)


@dataclass(frozen=True, slots=True)
class Move:
    """An operator that changed hosts: ``source`` is empty where it sat anywhere before. It stood
    still for ``standstill_s`` seconds: from the end of its last batch there (or from the request,
    where that came later) to the start of its first batch on the new hosts.
    """

    operator: str
    source: tuple[str, ...]
    destination: tuple[str, ...]
    standstill_s: float

    def __post_init__(self) -> None:
        _check_count("Move", "standstill_s", self.standstill_s)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the probe saw in the window that ended at ``at``. ``latency`` is end to end, of the
    events that left the topology. ``lead_s`` is the time from asking for capacity until it works,
    ``slots`` how many task slots there are now; None where they are not known. ``moves`` are the
    operators that changed hosts in the window. ``completion`` is how long inputs took until all
    that came of them was done, counted per input; ``latency`` counts every event that left.
    ``sojourn_sum_s`` is the sum of the times that an input and all that came of it spent at the
    operators, which is longer than completion where branches run side by side.
    """

    at: float
    window_s: float
    samples: Mapping[str, Sample]
    hosts: tuple[Host, ...] | None = None
    latency: Latency | None = None
    lead_s: float | None = None
    slots: int | None = None
    moves: tuple[Move, ...] = ()
    completion: Latency | None = None
    sojourn_sum_s: float | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.at):
            raise InvalidRecord(
                f"Snapshot.at is {self.at}: it must be a finite instant in UTC seconds"
            )
        if not (math.isfinite(self.window_s) and self.window_s > 0):
            raise InvalidRecord(
                f"Snapshot.window_s is {self.window_s}: a window lasts a finite number of seconds "
                "> 0"
            )
        _check_count("Snapshot", "lead_s", self.lead_s)
        _check_count("Snapshot", "sojourn_sum_s", self.sojourn_sum_s)
        _check_count("Snapshot", "slots", self.slots)

    def check(self, topology: Topology) -> Snapshot:
        """Itself, or an error when its operators are not the topology's."""
        odd = set(self.samples) ^ set(topology.names)
        if odd:
            raise InvalidRecord(
                f"snapshot and topology disagree about {', '.join(sorted(odd))}: every operator "
                "needs exactly one sample"
            )
        return self


@dataclass(frozen=True, slots=True)
class Forecast:
    """Events/s for each of the next windows; ``upper`` is a high quantile of the same, where the
    model knows one.
    """

    mean: tuple[float, ...]
    upper: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.mean:
            raise InvalidRecord("a Forecast needs at least one step")
        for name, values in (("mean", self.mean), ("upper", self.upper or ())):
            if not all(math.isfinite(v) and v >= 0 for v in values):
                raise InvalidRecord(f"Forecast.{name} is {values}: rates must be finite and >= 0")
        if self.upper is not None and len(self.upper) != len(self.mean):
            raise InvalidRecord(
                f"Forecast.upper has {len(self.upper)} steps, mean has {len(self.mean)}: they must "
                "match"
            )

    @classmethod
    def of(
        cls, mean: Sequence[float] | Array, upper: Sequence[float] | Array | None = None
    ) -> Forecast:
        """A forecast from any model output: negatives become 0 and the upper quantile is never
        below the mean.
        """
        low = np.maximum(np.asarray(mean, dtype=float), 0.0)
        high = (
            None
            if upper is None
            else tuple(np.maximum(np.asarray(upper, dtype=float), low).tolist())
        )
        return cls(tuple(low.tolist()), high)

    @property
    def horizon(self) -> int:
        return len(self.mean)

    def after(self, windows: int) -> Forecast | None:
        """What is left of the forecast when that many windows have passed; None when nothing is.

        >>> Forecast((1.0, 2.0, 3.0)).after(1)
        Forecast(mean=(2.0, 3.0), upper=None)
        """
        if windows >= self.horizon:
            return None
        return Forecast(self.mean[windows:], self.upper and self.upper[windows:])


@dataclass(frozen=True, slots=True)
class Choice:
    """What it would have cost on the load so far to keep ``share`` of the events within the target:
    replicas, starts and stops included, for each busy one.
    """

    share: float
    cost: float

    def __post_init__(self) -> None:
        for name in ("share", "cost"):
            _check_count("Choice", name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class Plan:
    """Absolute targets: replicas per operator, and executors or a placement where the planner
    decides those.

    ``placement`` maps an operator to the hosts its replicas sit on; a host it names that does not
    run yet is to be started. ``release`` names hosts to drain and give back; ``executors`` counts
    the hosts that stay or start. ``reasons`` holds one sentence with numbers per operator; key
    ``""`` is about the plan as a whole. ``model_error`` is the median relative error of the
    planner's own model on what it had not seen, where it has a model. ``choices`` are the prices of
    other promises, in the steps in which the planner works them out.
    """

    replicas: Mapping[str, int]
    reasons: Mapping[str, str] = field(default_factory=dict)
    executors: int | None = None
    placement: Mapping[str, tuple[str, ...]] | None = None
    release: tuple[str, ...] = ()
    model_error: float | None = None
    choices: tuple[Choice, ...] = ()

    def __post_init__(self) -> None:
        replicas = {n: whole(f"Plan.replicas[{n!r}]", r, 1) for n, r in self.replicas.items()}
        object.__setattr__(self, "replicas", replicas)
        if self.executors is not None:
            object.__setattr__(self, "executors", whole("Plan.executors", self.executors, 0))

    @property
    def total(self) -> int:
        return sum(self.replicas.values())

    def but(self, changes: Mapping[str, int], reason: str) -> Plan:
        """The plan with some replicas changed and ``reason`` added to each of them; itself when
        nothing changes.
        """
        changed = {n: r for n, r in changes.items() if self.replicas.get(n) != r}
        if not changed:
            return self
        reasons = dict(self.reasons)
        for n in changed:
            reasons[n] = f"{reasons[n]}; {reason}" if reasons.get(n) else reason
        return replace(self, replicas={**self.replicas, **changed}, reasons=reasons)


@dataclass(frozen=True, slots=True)
class WindowPrices:
    """What a schedule of windows costs, as published (BGElasor, section 4.3): a replica for one
    window, starting one, stopping one, one re-routing.
    """

    replica_window: float = 8000.0
    up: float = 5000.0
    down: float = 5000.0
    route: float = 100.0

    def __post_init__(self) -> None:
        for name in ("replica_window", "up", "down", "route"):
            _check_count("WindowPrices", name, getattr(self, name))

    def per_second(self, window_s: float) -> Prices:
        """The same prices for windows of ``window_s`` seconds.

        >>> WindowPrices().per_second(30.0).per_window(30.0) == WindowPrices()
        True
        """
        return Prices(self.replica_window / window_s, self.up, self.down, self.route)


@dataclass(frozen=True, slots=True)
class Prices:
    """What replicas cost: one second of a replica, starting one, stopping one, one re-routing.

    A second costs the same whatever the window is. The defaults are the published prices
    (``WindowPrices``) for windows of 30 seconds, in which the paper's figures are reproduced; the
    paper itself names no length.
    """

    replica_second: float = 8000.0 / 30.0
    up: float = 5000.0
    down: float = 5000.0
    route: float = 100.0

    def __post_init__(self) -> None:
        for name in ("replica_second", "up", "down", "route"):
            _check_count("Prices", name, getattr(self, name))

    def per_window(self, window_s: float) -> WindowPrices:
        """The prices of a schedule whose windows last ``window_s`` seconds, to 15 digits: a price
        per window that was divided by its seconds comes back exactly.
        """
        replica_window = float(f"{self.replica_second * window_s:.15g}")
        return WindowPrices(replica_window, self.up, self.down, self.route)

    @property
    def break_even_s(self) -> float:
        """Seconds after which an idle replica has cost as much as stopping and starting it.

        >>> Prices().break_even_s
        37.5
        """
        change = self.up + self.down
        return change / self.replica_second if self.replica_second else math.inf


@dataclass(frozen=True, slots=True)
class Decision:
    """One step of the loop, whole: a dashboard, a report and a replay need nothing else.

    ``proposed`` came from the planner, ``plan`` is what the guards left of it. Outcomes: observed
    (between two plans), waiting (too little known yet), unchanged, advised, applied, failed;
    ``error`` says what was missing or failed, and where.
    """

    at: float
    outcome: Outcome
    mode: Mode
    snapshot: Snapshot | None = None
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)
    proposed: Plan | None = None
    plan: Plan | None = None
    error: str | None = None
