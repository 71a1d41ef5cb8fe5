"""Measured speed-up: what full windows say, and what they do not."""

from collections.abc import Sequence

import pytest

from foretide.guards import View, effect
from foretide.history import History
from foretide.model import Plan, Sample, Snapshot
from foretide.speedup import ceiling, full_throughput, slower, useful
from foretide.topology import Operator, Topology

ONE = Topology((Operator("a", max_replicas=32),))


def history(windows: Sequence[tuple[int, float, float]]) -> History:
    """Windows of 10 s: (replicas, events processed, backlog at the end)."""
    past = History(ONE)
    for i, (replicas, processed, backlog) in enumerate(windows):
        sample = Sample(1000, processed, backlog, replicas, busy_s=10.0 * replicas)
        past.append(Snapshot(10.0 * (i + 1), 10.0, {"a": sample}))
    return past


def full(replicas: int, processed: float, windows: int = 4) -> list[tuple[int, float, float]]:
    return [(replicas, processed, 50_000.0)] * windows


def test_only_full_windows_after_the_change_count() -> None:
    past = history([(4, 400, 0), *full(4, 400), *full(12, 1200), (12, 300, 100), (12, 200, 0)])
    measured = full_throughput(past, "a")
    assert {r: (f.rate, f.settled) for r, f in measured.items()} == {4: (40.0, 3), 12: (120.0, 3)}
    assert ceiling(past, "a") is None


def test_replicas_that_add_nothing_are_known() -> None:
    past = history([*full(4, 400), *full(12, 405)])
    limit = ceiling(past, "a")
    assert limit is not None
    assert (limit.best.replicas, limit.tried.replicas, limit.expected) == (4, 12, 120.0)
    assert str(limit) == (
        "12 replicas process no more than 4 did (40 and 40 events/s, 120 were expected): something "
        "they share is full"
    )
    assert useful(past, "a", 20) == 4
    assert useful(past, "a", 3) == 3


@pytest.mark.parametrize(("fewer", "more"), [(4, 12), (1, 32)])
def test_a_little_speed_up_is_speed_up(fewer: int, more: int) -> None:
    assert ceiling(history([*full(fewer, 400), *full(more, 600)]), "a") is None


def test_what_a_still_larger_number_reached_counts() -> None:
    past = [*full(4, 400), *full(8, 400), *full(16, 900)]
    assert ceiling(history(past), "a") is None
    limit = ceiling(history([*past, *full(24, 910)]), "a")
    assert limit is not None
    assert (limit.best.replicas, limit.tried.replicas) == (16, 24)


@pytest.mark.parametrize("noise", [0.93, 1.0, 1.02])
def test_one_replica_more_is_not_judged_by_noise(noise: float) -> None:
    assert ceiling(history([*full(4, 400), *full(5, 400 * noise)]), "a") is None


def test_one_replica_more_that_makes_it_worse_is() -> None:
    limit = ceiling(history([*full(4, 400), *full(5, 300)]), "a")
    assert limit is not None
    assert "5 replicas process less than 4 did" in str(limit)


def test_dearer_events_end_a_ceiling() -> None:
    """8 replicas did as much as 4 only because events cost twice as much by then."""
    past = [*full(4, 400), *full(8, 400)]
    assert useful(history(past), "a", 8) == 4
    assert useful(history([*past, *full(4, 200)]), "a", 8) == 8


def test_what_was_measured_long_ago_is_forgotten() -> None:
    idle = [(4, 10.0, 0.0)] * 60
    assert ceiling(history([*full(4, 400), *full(12, 400), *idle]), "a") is None


def test_the_guard_takes_back_what_added_nothing_and_says_so() -> None:
    past = history([*full(4, 400), *full(12, 300)])
    plan = effect()(Plan({"a": 16}, {"a": "the backlog is long"}), View(ONE, past, 0.0))
    assert plan.replicas == {"a": 4}
    assert plan.reasons["a"].startswith("the backlog is long; 12 replicas process less than 4 did")
    assert effect()(Plan({"a": 3}), View(ONE, past, 0.0)) == Plan({"a": 3})


def paced(windows: Sequence[tuple[int, float, float]]) -> History:
    """Windows of 10 s: (replicas, events arrived, seconds that each spent here)."""
    past = History(ONE)
    for i, (replicas, arrived, sojourn_s) in enumerate(windows):
        sample = Sample(arrived, arrived, 10.0, replicas, sojourn_s=sojourn_s)
        past.append(Snapshot(10.0 * (i + 1), 10.0, {"a": sample}))
    return past


def test_a_change_that_made_events_slower_is_taken_back() -> None:
    past = paced([(4, 400, 2.0)] * 4 + [(12, 420, 5.0)] * 4)
    plan = effect()(Plan({"a": 12}), View(ONE, past, 0.0))
    assert plan.replicas == {"a": 4}
    assert plan.reasons["a"] == (
        "events take 5.0 s with 12 replicas and took 2.0 s with 4: the change is taken back"
    )


@pytest.mark.parametrize(
    ("arrived", "sojourn_s"), [(900, 5.0), (400, 2.4), (400, 1.0)], ids=["load", "noise", "better"]
)
def test_slower_is_said_only_under_the_same_load_and_beyond_noise(
    arrived: float, sojourn_s: float
) -> None:
    assert slower(paced([(4, 400, 2.0)] * 4 + [(12, arrived, sojourn_s)] * 4), "a") is None


def test_it_ends_when_fewer_replicas_are_as_slow() -> None:
    """Events have become dearer: back at 4 replicas they take as long."""
    past = [(4, 400, 2.0)] * 4 + [(12, 400, 5.0)] * 4
    assert useful(paced(past), "a", 12) == 4
    assert useful(paced([*past, *[(4, 400, 9.0)] * 4]), "a", 12) == 12


@pytest.mark.parametrize(
    "idle", [{"batches": 0.0, "busy_s": None}, {"batches": 1.0, "busy_s": 9.0}]
)
def test_windows_between_batches_say_nothing_about_replicas(idle: dict[str, float | None]) -> None:
    """A batch that is still running has processed nothing yet: that is no reason to scale in."""
    past = History(ONE)
    for i in range(4):
        busy = Sample(1000, 100, 5000.0, 1, busy_s=10.0, batches=1.0)
        past.append(Snapshot(10.0 * (i + 1), 10.0, {"a": busy}))
    for i in range(4, 9):
        waiting = Sample(1000, 80, 5000.0, 5, **idle)
        past.append(Snapshot(10.0 * (i + 1), 10.0, {"a": waiting}))
    assert ceiling(past, "a") is None


def test_windows_inside_a_long_batch_count() -> None:
    """Windows of 2 s on Spark before a lock: one replica, then 8, in batches of several windows
    whose parts are counted, with their busy time, where they end.
    """
    seen = [
        # replicas, processed, backlog, busy seconds, batches that ended
        (1, 101, 222, 2.1, 0),
        (1, 100, 187, 2.1, 0),
        (8, 86, 192, 9.6, 1),
        (8, 81, 197, 11.9, 0),
        (8, 84, 201, 13.1, 1),
        (8, 63, 249, 9.6, 0),
        (8, 4, 524, 1.0, 0),
        (8, 137, 780, 21.4, 0),
    ]
    past = History(ONE)
    for i, (replicas, processed, backlog, busy_s, batches) in enumerate(seen):
        sample = Sample(110, processed, backlog, replicas, busy_s=busy_s, batches=batches)
        past.append(Snapshot(2.0 * (i + 1), 2.0, {"a": sample}))
    measured = full_throughput(past, "a")
    assert measured[1].rate == pytest.approx(47.9, abs=0.5)
    assert measured[8].rate == pytest.approx((84 / 2 + 63 / 2 + 137 / (21.4 / 8)) / 3)
    limit = ceiling(past, "a")
    assert limit is not None
    assert (limit.best.replicas, limit.tried.replicas) == (1, 8)


def test_a_window_in_which_nothing_ended_shows_nothing() -> None:
    past = History(ONE)
    for i, processed in enumerate([0.0, 0.0, 0.0, 40.0]):
        sample = Sample(10, processed, 500, 2, busy_s=20.0, batches=int(processed > 0))
        past.append(Snapshot(10.0 * (i + 1), 10.0, {"a": sample}))
    assert full_throughput(past, "a")[2].rate == 4.0
