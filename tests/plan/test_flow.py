import numpy as np
import pytest

from foretide.errors import Infeasible, NotReady
from foretide.history import History
from foretide.model import Forecast, Sample, Snapshot
from foretide.plan.flow import Flow, expected_rates
from foretide.topology import Operator, Topology

SPLIT = Topology(
    (Operator("o1"), Operator("o2", ("o1",)), Operator("o3", ("o1",)), Operator("o4", ("o2", "o3")))
)
SHARES = {("o1", "o2"): 0.7, ("o1", "o3"): 0.3, ("o2", "o4"): 0.4, ("o3", "o4"): 1.0}


def history(topology, emitted, processed=100.0):
    h = History(topology)
    done = processed if isinstance(processed, dict) else dict.fromkeys(topology.names, processed)
    h.append(
        Snapshot(
            10.0,
            10.0,
            {
                n: Sample(done[n], done[n], 0, 1, emitted.get(n, {}), busy_s=1)
                for n in topology.names
            },
        )
    )
    return h


def test_worked_example_of_pa_sps():
    theta = Flow(SPLIT, SHARES).theta()
    assert theta == pytest.approx({"o1": 1.0, "o2": 0.7, "o3": 0.3, "o4": 0.58})


def test_a_backlog_of_a_shared_ancestor_reaches_a_join_once_per_path_with_that_paths_share():
    queued = Flow(SPLIT, SHARES).through({"o1": 10.0, "o2": 5.0, "o3": 1.0, "o4": 2.0})
    assert queued["o2"] == pytest.approx(5 + 7)
    assert queued["o3"] == pytest.approx(1 + 3)
    assert queued["o4"] == pytest.approx(2 + 12 * 0.4 + 4 * 1.0)


def test_every_source_brings_its_own_load():
    t = Topology((Operator("a"), Operator("b"), Operator("join", ("a", "b"))))
    flow = Flow(t, {("a", "join"): 0.5, ("b", "join"): 2.0})
    assert flow.through({"a": 10.0, "b": 4.0})["join"] == pytest.approx(13.0)


def test_a_loop_counts_every_round():
    t = Topology((Operator("a", ("b",), source=True), Operator("b", ("a",))))
    assert Flow(t, {("a", "b"): 1.0, ("b", "a"): 0.2}).theta() == pytest.approx(
        {"a": 1.25, "b": 1.25}
    )
    with pytest.raises(Infeasible):
        Flow(t, {("a", "b"): 1.0, ("b", "a"): 1.0}).theta()


def test_measured_shares_come_from_the_history():
    h = history(SPLIT, {"o1": {"o2": 70.0, "o3": 30.0}, "o2": {"o4": 40.0}, "o3": {"o4": 100.0}})
    assert Flow.measured(SPLIT, h).selectivity == pytest.approx(SHARES)


def test_an_operator_that_events_reach_must_have_worked():
    h = history(
        SPLIT, {"o1": {"o2": 70.0, "o3": 30.0}}, {"o1": 100.0, "o2": 0.0, "o3": 10.0, "o4": 0.0}
    )
    with pytest.raises(NotReady, match="'o2' has not processed"):
        Flow.measured(SPLIT, h)


def test_a_branch_that_nothing_takes_passes_nothing_on():
    h = history(
        SPLIT,
        {"o1": {"o3": 100.0}, "o3": {"o4": 100.0}},
        {"o1": 100.0, "o2": 0.0, "o3": 100.0, "o4": 100.0},
    )
    assert Flow.measured(SPLIT, h).theta() == pytest.approx(
        {"o1": 1.0, "o2": 0.0, "o3": 1.0, "o4": 1.0}
    )


def test_nothing_measured_is_not_ready():
    with pytest.raises(NotReady):
        Flow.measured(SPLIT, History(SPLIT))


def test_forecasts_of_every_operator_are_taken_as_they_are():
    ahead = {n: Forecast((float(i), 2.0)) for i, n in enumerate(SPLIT.names)}
    rates = expected_rates(SPLIT, History(SPLIT), ahead)
    assert [r.tolist() for r in rates.values()] == [[0.0, 2.0], [1.0, 2.0], [2.0, 2.0], [3.0, 2.0]]


def test_forecasts_of_sources_go_through_the_graph_step_by_step():
    h = history(SPLIT, {"o1": {"o2": 70.0, "o3": 30.0}, "o2": {"o4": 40.0}, "o3": {"o4": 100.0}})
    rates = expected_rates(SPLIT, h, {"o1": Forecast((100.0, 200.0))})
    assert rates["o4"].tolist() == pytest.approx([58.0, 116.0])
    with pytest.raises(NotReady, match="no forecast for o1"):
        expected_rates(SPLIT, h, {})


def test_in_a_loop_what_comes_back_is_added_to_the_forecast():
    t = Topology((Operator("a", ("b",), source=True), Operator("b", ("a",))))
    h = history(t, {"a": {"b": 100.0}, "b": {"a": 20.0}})
    rates = expected_rates(t, h, {"a": Forecast((80.0,)), "b": Forecast((5.0,))})
    assert rates["a"].tolist() == pytest.approx([100.0])


def test_what_is_left_after_a_time_waits_where_events_are_held_up() -> None:
    names = Operator("in"), Operator("slow", ("in",)), Operator("out", ("slow",))
    flow = Flow(Topology(names), {("in", "slow"): 2.0, ("slow", "out"): 0.5})
    left = flow.left(np.array([4.0, 1.0, 0.0]), np.array([6.0, 0.0, 0.0]), np.array([10, 15, 10.0]))
    assert left.tolist() == [0.0, 6.0, 0.0]


def test_events_that_go_round_are_left_as_often_as_they_come_back() -> None:
    """Half of what is done comes back: 8 events are 16 to do, and 12 can be done."""
    loop = Topology((Operator("in"), Operator("again", ("in", "again"))))
    flow = Flow(loop, {("in", "again"): 1.0, ("again", "again"): 0.5})
    left = flow.left(np.zeros(2), np.array([8.0, 0.0]), np.array([20.0, 12.0]))
    np.testing.assert_allclose(left, [0.0, 8.0 + 6.0 - 12.0])
    done = flow.left(np.zeros(2), np.array([8.0, 0.0]), np.array([20.0, 20.0]))
    np.testing.assert_allclose(done, [0.0, 0.0], atol=1e-4)
