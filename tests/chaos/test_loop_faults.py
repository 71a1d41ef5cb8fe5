"""The loop under faults of its machine: clocks, disks, probes, plans. Replicas stay right, and what
happened is a sentence.
"""

import math
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from faults import PAIR, FullDisk, JumpingClock, MeasuredWorld

from foretide.autoscaler import Autoscaler
from foretide.errors import ActuationError, InvalidRecord, JournalError, PipelineFailed
from foretide.forecast.basic import Basic
from foretide.guards import bounds, cool_down
from foretide.journal import Journal, Run, read
from foretide.model import Decision, Plan, Sample, Snapshot
from foretide.plan.reactive import Reactive
from foretide.spark.control.live import KEPT, Recorder
from foretide.spark.run.folder import RunFolder
from foretide.spark.run.limits import Limits
from foretide.spark.run.running import Running
from foretide.systems import SYSTEMS, system

RUN = Run("test", "srea", PAIR, 10.0, 0.0)


def go(world: MeasuredWorld, steps: int, at: int, fault: Callable[[], None]) -> list[Decision]:
    """A loop of 10 s windows; ``fault`` strikes while window ``at`` runs."""
    seen: list[Decision] = []

    def record(decision: Decision) -> None:
        seen.append(decision)
        if len(seen) == at - 1:
            fault()

    guards = (cool_down(30.0), bounds())
    loop = Autoscaler(
        PAIR, world, Reactive(), world, Basic, guards=guards, mode="act", record=record
    )
    loop.run(world.clock, 10.0, steps=steps)
    return seen


@pytest.mark.parametrize("jump_s", [-3600.0, -5.0, 5.0, 3600.0])
def test_a_clock_that_is_set_neither_silences_the_loop_nor_changes_replicas(
    clock: JumpingClock, world: MeasuredWorld, jump_s: float
) -> None:
    seen = go(world, 40, 20, lambda: clock.set_wall(jump_s))
    assert max(clock.waits) <= 10.0, "a clock set back by an hour must not be waited for"
    before, struck, after = seen[18], seen[19], seen[20:]
    assert struck.outcome == "waiting"
    assert "the clock moved by" in (struck.error or "")
    assert struck.at == pytest.approx(before.at + 10.0 + jump_s), "stamps follow the wall clock"
    assert all(d.snapshot and d.snapshot.window_s == pytest.approx(10.0) for d in after)
    assert {tuple(d.plan.replicas.values()) for d in after if d.plan} == {(5, 5)}
    assert world.replicas == {"a": 5, "b": 5}


def test_a_suspended_machine_leaves_a_gap_although_its_monotonic_clock_stood_still(
    clock: JumpingClock, world: MeasuredWorld
) -> None:
    """An hour of events waits in the source when the machine wakes up: no rate of ten seconds."""

    def suspend() -> None:
        clock.set_wall(3600.0)
        world.offline_s += 3600.0

    seen = go(world, 30, 20, suspend)
    assert seen[19].snapshot is None
    assert "suspended" in (seen[19].error or "")
    arrived = [d.snapshot.samples["a"].arrived for d in seen if d.snapshot]
    assert max(arrived) == pytest.approx(1000.0)


def test_a_stopped_process_leaves_a_gap(clock: JumpingClock, world: MeasuredWorld) -> None:
    wait = clock.wait_until

    def longer(at: float, stop: threading.Event) -> None:
        wait(at, stop)
        if len(clock.waits) == 20:
            clock.freeze(3600.0)

    clock.wait_until = longer  # type: ignore[method-assign]
    seen = go(world, 30, 99, lambda: None)
    assert "lasted 3,610 s instead of 10 s" in (seen[19].error or "")
    assert {d.outcome for d in seen[20:]} <= {"unchanged", "applied"}


def test_a_probe_that_hangs_leaves_two_gaps_and_replicas_as_they_were(
    clock: JumpingClock, world: MeasuredWorld
) -> None:
    def hang() -> None:
        def once() -> None:
            clock.freeze(600.0)
            world.before_read = lambda: None

        world.before_read = once

    seen = go(world, 30, 20, hang)
    assert "a read took 600 s" in (seen[19].error or "")
    assert [d.snapshot is None for d in seen[18:23]] == [False, True, True, False, False]
    assert {tuple(d.plan.replicas.values()) for d in seen[21:] if d.plan and not d.error}


def test_a_slow_step_is_no_gap(clock: JumpingClock, world: MeasuredWorld) -> None:
    """A planner that takes seven windows delays the loop; the window it delayed was measured."""

    class Slow(Reactive):
        def plan(self, *args: object) -> Plan:
            clock.freeze(70.0)
            return super().plan(*args)  # type: ignore[arg-type]

    seen: list[Decision] = []
    loop = Autoscaler(PAIR, world, Slow(), world, Basic, mode="act", record=seen.append)
    loop.run(clock, 10.0, steps=10)
    assert [d.error for d in seen] == [None] * 10
    assert [d.snapshot.window_s for d in seen[1:] if d.snapshot] == [pytest.approx(70.0)] * 9


@pytest.mark.parametrize("name", [
    pytest.param(n, marks=pytest.mark.slow) if n in ("bgelasor", "pa-sps") else n for n in SYSTEMS
])  # fmt: skip
def test_no_system_follows_a_clock_set_forward_by_an_hour(name: str) -> None:
    clock = JumpingClock()
    world = MeasuredWorld(clock)
    seen: list[tuple[int, ...]] = []

    def record(decision: Decision) -> None:
        seen.append(tuple(world.replicas.values()))
        if len(seen) == 60:
            clock.set_wall(3600.0)

    loop = system(name).autoscaler(PAIR, world, world, "act", record)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loop.run(clock, 10.0, steps=100)
    assert len(seen) == 100
    assert min(map(min, seen[60:])) >= min(map(min, seen[30:60]))


@pytest.mark.parametrize("value", [None, 7, {"samples": {}}])
def test_what_is_not_a_snapshot_is_a_sentence(world: MeasuredWorld, value: object) -> None:
    probe = SimpleNamespace(read=lambda now: value)
    loop = Autoscaler(PAIR, probe, Reactive(), world, Basic)  # type: ignore[arg-type]
    decision = loop.step(10.0)
    assert decision.outcome == "failed"
    assert "a probe returns a Snapshot" in (decision.error or "")


@pytest.mark.parametrize("field", ["arrived", "processed", "backlog", "replicas"])
def test_none_in_a_sample_is_a_sentence(field: str) -> None:
    values = {"arrived": 1.0, "processed": 1.0, "backlog": 0.0, "replicas": 1, field: None}
    with pytest.raises(InvalidRecord, match=rf"Sample\.{field} is None: "):
        Sample(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("odd", [2.5, math.nan, math.inf, True, np.True_, "7", None, np.float64(3)])
def test_a_plan_takes_whole_numbers_only(odd: object) -> None:
    with pytest.raises(InvalidRecord, match="must be a whole number"):
        Plan({"a": odd})  # type: ignore[dict-item]
    if odd is not None:
        with pytest.raises(InvalidRecord, match="must be a whole number"):
            Plan({"a": 1}, executors=odd)  # type: ignore[arg-type]


def test_a_plan_turns_numpy_numbers_into_plain_ones() -> None:
    plan = Plan({"a": np.int64(7)}, executors=np.int32(2))  # type: ignore[dict-item, arg-type]
    assert (type(plan.replicas["a"]), type(plan.executors)) == (int, int)
    assert (plan.replicas["a"], plan.executors) == (7, 2)


def half_running(path: Path) -> Running:
    """A running pipeline as far as ``set_replicas`` needs one."""
    running = object.__new__(Running)
    running.replicas = {"a": 2, "b": 2}
    running.topology = PAIR
    running.pipeline = SimpleNamespace(name="x", trigger_s=1.0)  # type: ignore[assignment]
    running.folder = RunFolder(path)
    running._changing = threading.Lock()
    running.limits = Limits(running.folder, 1.0, running.replicas)
    return running


def test_replicas_stay_when_they_cannot_be_kept(tmp_path: Path, disk: FullDisk) -> None:
    running = half_running(tmp_path)
    disk.fill()
    with pytest.raises(ActuationError, match="No space left on device; replicas stay as they are"):
        running.set_replicas({"a": 9})
    assert running.replicas == {"a": 2, "b": 2}
    disk.free()
    running.set_replicas({"a": np.int64(9)})  # type: ignore[dict-item]
    assert running.replicas == {"a": 9, "b": 2}
    assert running.folder.saved_replicas() == {"a": 9, "b": 2}


@pytest.mark.parametrize("odd", [2.5, math.nan, True])
def test_replicas_are_whole_numbers(tmp_path: Path, odd: object) -> None:
    running = half_running(tmp_path)
    with pytest.raises(InvalidRecord, match="must be a whole number"):
        running.set_replicas({"a": odd})  # type: ignore[dict-item]
    assert running.replicas == {"a": 2, "b": 2}


def decision(at: float) -> Decision:
    sample = Sample(1, 1, 0, 5)
    return Decision(at, "unchanged", "act", Snapshot(at, 10.0, {"a": sample, "b": sample}))


def test_a_half_written_line_costs_no_other_line(tmp_path: Path, disk: FullDisk) -> None:
    with Journal(tmp_path / "journal.jsonl", RUN) as journal:
        journal.append(decision(1.0))
        disk.fill(room=20)
        for at in (2.0, 3.0):
            with pytest.raises(JournalError, match="No space left on device"):
                journal.append(decision(at))
        disk.free()
        for at in (4.0, 5.0):
            journal.append(decision(at))
    with pytest.warns(UserWarning, match="1 torn line was skipped"):
        _, decisions = read(tmp_path / "journal.jsonl")
    assert [d.at for d in decisions] == [1.0, 4.0, 5.0]


def test_a_failed_pipeline_ends_the_run_also_when_the_journal_cannot_be_written(
    tmp_path: Path, disk: FullDisk, clock: JumpingClock
) -> None:
    """The loop would otherwise run for ever: record raised before it looked at the failure."""

    class Failed:
        def read(self, now: float) -> Snapshot:
            raise PipelineFailed("the disk is full; nothing was lost: free space and start again")

    stop, world = threading.Event(), MeasuredWorld(clock)
    with Journal(tmp_path / "journal.jsonl", RUN) as journal:
        recorder = Recorder(stop, lambda: True)
        loop = Autoscaler(
            PAIR, Failed(), Reactive(), world, Basic,
            record=lambda d: recorder(d, (journal.append,)),
        )  # fmt: skip
        disk.fill()
        loop.run(clock, 10.0, stop, steps=50)
    assert stop.is_set()
    assert len(recorder.kept) == 1, "it ends within one window"


def test_every_taker_gets_the_decision_and_a_live_run_keeps_a_bounded_number() -> None:
    seen: list[float] = []
    recorder = Recorder(threading.Event(), lambda: False)

    def fails(decision: Decision) -> None:
        raise JournalError("cannot write")

    for i in range(KEPT + 50):
        with pytest.raises(JournalError):
            recorder(Decision(float(i), "unchanged", "act"), (fails, lambda d: seen.append(d.at)))
    assert len(seen) == KEPT + 50
    assert [recorder.kept[0].at, len(recorder.kept)] == [50.0, KEPT]
