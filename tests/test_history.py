import numpy as np
import pytest

from foretide.errors import InvalidRecord, NotReady
from foretide.history import History
from foretide.model import Sample, Snapshot
from foretide.topology import Operator, Topology

CHAIN = Topology((Operator("a"), Operator("b", inputs=("a",))))


def window(at: float, arrived: float, replicas: int = 1, busy_s: float | None = 1.0) -> Snapshot:
    a = Sample(arrived, arrived, 5, replicas, {"b": arrived / 2}, busy_s=busy_s)
    b = Sample(arrived / 2, arrived / 2, 0, 1, busy_s=busy_s)
    return Snapshot(at, 10.0, {"a": a, "b": b})


def test_a_hole_is_marked_and_not_filled_with_zeros() -> None:
    h = History(CHAIN)
    h.append(window(10, 100))
    h.gap(20)
    h.append(window(30, 200))
    np.testing.assert_array_equal(h.rates("a"), [10, np.nan, 20])
    np.testing.assert_array_equal(h.load(), [10, np.nan, 20])
    assert len(h) == 3
    assert h.now == 30


def test_averages_skip_holes_and_idle_windows() -> None:
    h = History(CHAIN)
    h.append(window(10, 100, busy_s=2.0))
    h.gap(20)
    h.append(window(30, 0, busy_s=0.0))
    assert h.service_time_s("a") == pytest.approx(0.02)
    assert h.selectivity("a", "b") == pytest.approx(0.5)
    assert h.selectivity("b", "a") == 0.0


def test_what_was_never_measured_is_none() -> None:
    h = History(CHAIN)
    with pytest.raises(NotReady):
        _ = h.latest
    h.append(window(10, 0, busy_s=None))
    assert h.service_time_s("a") is None
    assert h.selectivity("a", "b") is None
    assert h.utilization("a") is None


def test_offered_is_what_comes_from_outside_even_in_a_loop() -> None:
    loop = Topology((Operator("d", inputs=("d",), source=True),))
    h = History(loop)
    h.append(Snapshot(10, 10.0, {"d": Sample(150, 150, 0, 1, {"d": 50}, offered=100)}))
    assert h.offered("d") == pytest.approx([10.0])
    assert h.rates("d") == pytest.approx([15.0])
    assert h.load() == pytest.approx([10.0])


def test_time_since_the_last_change() -> None:
    h = History(CHAIN)
    h.append(window(10, 100, replicas=1))
    assert h.since_change_s() is None
    h.append(window(20, 100, replicas=3))
    h.append(window(30, 100, replicas=3))
    assert h.since_change_s() == 10
    assert h.replicas("a") == 3
    assert h.backlog("a") == 5


def test_memory_is_bounded_and_the_newest_windows_stay() -> None:
    h = History(CHAIN, limit=10)
    for i in range(1, 101):
        h.append(window(10 * i, i))
    assert len(h) == 10
    np.testing.assert_allclose(h.rates("a") * 10, np.arange(91, 101))
    np.testing.assert_allclose(h.rates("a", last=2) * 10, [99, 100])
    assert len(h._windows) < 20


def test_a_snapshot_of_other_operators_is_refused() -> None:
    with pytest.raises(InvalidRecord):
        History(CHAIN).append(Snapshot(0, 1, {"x": Sample(0, 0, 0, 1)}))


def test_an_earlier_run_s_measurements_serve_until_the_operator_has_worked() -> None:
    topology = Topology((Operator("a"), Operator("b", inputs=("a",))))
    h = History(topology)
    h.start_from({"a": 0.03}, {("a", "b"): 0.5})
    assert h.service_time_s("a") == 0.03
    assert h.service_time_s("b") is None
    assert h.selectivity("a", "b") == 0.5
    worked = Sample(10, 10, 0, 1, {"b": 10.0}, busy_s=0.1)
    h.append(Snapshot(at=1.0, window_s=1.0, samples={"a": worked, "b": Sample(0, 0, 0, 1)}))
    assert h.service_time_s("a") == pytest.approx(0.01)
    assert h.selectivity("a", "b") == 1.0
