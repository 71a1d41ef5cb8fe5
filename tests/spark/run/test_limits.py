"""How many events a batch takes, before and after anything is known of the service time."""

from pathlib import Path

import pytest

from foretide.clock import LEAST_EVENTS, MOST_SPAN_S
from foretide.spark.run.folder import RunFolder
from foretide.spark.run.limits import FILE_EVENTS, FIRST, Limits


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_first_batches_are_small_and_later_ones_hold_two_triggers_of_work(
    folder: RunFolder,
) -> None:
    replicas = {"a": 2}
    limits = Limits(folder, trigger_s=2.0, replicas=replicas)
    assert limits.of("a") == 2 * FIRST
    assert limits.per_file(["a"]) == FILE_EVENTS, "a file is cut when it is read"
    limits.observe("a", busy_s=5.0, events=100)
    assert limits.of("a") == 160
    assert limits.per_file(["a"]) == 160
    replicas["a"] = 4
    limits.renew("a")
    assert int(folder.limit_file("a").read_text()) == limits.of("a") == 320
    limits.observe("a", busy_s=900.0, events=1)
    assert limits.of("a") == LEAST_EVENTS


def test_a_restart_begins_with_what_was_learned(folder: RunFolder) -> None:
    Limits(folder, 2.0, {"a": 1}).observe("a", busy_s=5.0, events=100)
    again = Limits(folder, 2.0, {"a": 3, "new": 1})
    assert again.service_time_s("a") == pytest.approx(0.05)
    assert (again.of("a"), again.of("new")) == (240, FIRST)
    (folder.path / "service_times.json").write_text("torn")
    assert Limits(folder, 2.0, {"a": 1}).of("a") == FIRST


def test_short_triggers_do_not_make_tiny_batches(folder: RunFolder) -> None:
    limits = Limits(folder, 0.1, {"a": 1})
    limits.observe("a", busy_s=1.0, events=100)
    assert limits.of("a") == 200, "two seconds of work"


def test_a_fixed_limit_stays(folder: RunFolder) -> None:
    limits = Limits(folder, 2.0, {"a": 1}, {"a": 7})
    limits.observe("a", busy_s=1.0, events=1000)
    assert (limits.of("a"), limits.per_file(["a"])) == (7, 7)


def test_events_that_are_dropped_make_room_for_more(folder: RunFolder) -> None:
    limits = Limits(folder, 2.0, {"a": 1})
    limits.observe("a", busy_s=5.0, events=100)
    assert limits.of("a") == 80
    limits.dropped("a", share=0.75)
    assert limits.of("a") == 320
    limits.dropped("a", share=1.0)
    assert limits.of("a") == 8000
    limits.dropped("a", share=0.0)
    assert limits.of("a") == 80
    assert limits.service_time_s("a") == pytest.approx(0.05)


def test_a_batch_that_costs_much_beside_its_work_holds_more(folder: RunFolder) -> None:
    limits = Limits(folder, 1.0, {"a": 2})
    limits.observe("a", busy_s=5.0, events=100, overhead_s=0.2)
    assert limits.of("a") == 80, "two seconds of work on each of two replicas"
    limits.observe("a", busy_s=5.0, events=100, overhead_s=1.8)
    assert limits.of("a") == 160, "four times the mean of 0.2 and 1.8 s"
    limits.observe("a", busy_s=5.0, events=100, overhead_s=60.0)
    assert limits.of("a") == 2 * MOST_SPAN_S / 0.05
