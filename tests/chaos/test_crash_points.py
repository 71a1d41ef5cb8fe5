"""Exactly once after a crash, or a power cut, at any file operation of the delivery protocol; and
faults in the protocol that this enumeration must see.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crash_points import INJECTOR, Trial, trial

from foretide.spark.edge.checkpoint import Checkpoint
from foretide.spark.edge.outbox import Outbox
from foretide.spark.edge.protocol import Manifest
from foretide.spark.run.accounts import Delivery
from foretide.spark.run.batch import Intake
from foretide.spark.run.channels import Channels
from foretide.spark.run.query import OperatorQuery

LONG = 300
"""Operations of a life: no run has fewer."""
WAYS = ("lost", "empty", "mixed")


def broken(*trials: Trial) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(t.crashes, t.wrong) for t in trials if t.wrong]


def every(seed: int, torn: bool = False, power: str | None = None) -> Iterator[Trial]:
    """One crash at each operation of a run in turn."""
    point, found = 0, Trial(False, (), ())
    while not found.ended:
        point += 1
        found = trial([point], seed, torn, power)
        yield found


def test_a_run_without_a_crash_is_right() -> None:
    found = trial([10**9], seed=1)
    assert found.ended
    assert found.wrong == ()
    assert INJECTOR.count > LONG


@pytest.mark.parametrize("torn", [False, True])
def test_some_crash_points(torn: bool) -> None:
    trials = [trial([point], 1, torn) for point in range(7 + torn, LONG, 41)]
    assert broken(*trials) == []
    assert all(t.crashes for t in trials)


@pytest.mark.parametrize("way", WAYS)
def test_some_power_cuts(way: str) -> None:
    assert broken(*(trial([point], 2, power=way) for point in range(20, LONG, 110))) == []


def test_some_chains_of_crashes() -> None:
    rng = random.Random(5)
    chains = [[rng.randint(1, LONG), rng.randint(1, 60), rng.randint(1, 60)] for _ in range(4)]
    assert broken(*(trial(chain, i, torn=i % 2 == 0) for i, chain in enumerate(chains))) == []


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("torn", [False, True])
def test_every_crash_point(seed: int, torn: bool) -> None:
    trials = list(every(seed, torn))
    assert len(trials) > LONG
    assert broken(*trials) == []


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("way", WAYS)
def test_a_power_cut_at_every_point(way: str) -> None:
    trials = list(every(1, power=way))
    assert len(trials) > LONG
    assert broken(*trials) == []


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("power", [None, *WAYS])
def test_long_chains_of_crashes(power: str | None) -> None:
    rng = random.Random(5)
    for k in range(150):
        chain = [rng.randint(1, LONG), *(rng.randint(1, 60) for _ in range(rng.randint(1, 4)))]
        assert broken(trial(chain, k, k % 3 == 0, power)) == []


def seen(step: int, power: str | None = None, most: int = LONG, start: int = 3) -> bool:
    """Whether some crash point shows the fault: every ``step``-th first, then those between. Names
    of files differ from run to run, and with them where exactly it shows.
    """
    points = (p for first in range(start, start + step) for p in range(first, most, step))
    return any(trial([point], 1, power=power).wrong for point in points)


def test_it_sees_input_deleted_before_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    account = OperatorQuery._account

    def early(self: OperatorQuery, intake: Intake, delivery: Delivery) -> None:
        account(self, intake, delivery)
        self.inbox.discard(intake.files)

    monkeypatch.setattr(OperatorQuery, "_account", early)
    assert trial([10**9], 1).wrong == (), "without a crash the fault does not show"
    assert seen(1, start=92)


def test_it_sees_a_delivery_that_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outbox, "has", lambda self, batch: False)
    assert seen(7)


def test_it_sees_a_delivery_in_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def deliver(self: Outbox, staging: Path, manifest: Manifest) -> None:
        folder = self.folder(manifest.batch)
        folder.mkdir(exist_ok=True)
        (staging / "manifest.json").write_bytes(msgspec.json.encode(manifest))
        for name in sorted(os.listdir(staging)):
            os.rename(staging / name, folder / name)
        staging.rmdir()

    monkeypatch.setattr(Outbox, "deliver", deliver)
    assert seen(5)


def test_it_sees_a_sink_dropped_before_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def early(self: Channels, spark: Any, outbox: Outbox, batch: int) -> None:
        for sink in self.sinks:
            folder = outbox.folder(batch) / f"sink.{sink.name}"
            if sink.write is not None and folder.is_dir():
                rows = spark.read.parquet(str(folder))
                outbox.drop(folder)
                sink.write(rows, batch)

    monkeypatch.setattr(Channels, "write_sinks", early)
    assert seen(1, start=225)


def test_it_sees_a_delivery_that_was_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    init = Outbox.__init__
    monkeypatch.setattr(
        Outbox, "__init__", lambda self, root, durability="process": init(self, root)
    )
    assert seen(29, power="empty", start=60)


def test_it_sees_input_deleted_before_the_commit_was_synced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Checkpoint, "settle", lambda self, batch: None)
    assert seen(2, power="empty", start=95)
