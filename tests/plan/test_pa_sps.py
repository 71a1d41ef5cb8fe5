import pytest

from foretide.errors import InvalidConfig, NotReady
from foretide.history import History
from foretide.model import Forecast, Sample, Snapshot
from foretide.plan.flow import Flow
from foretide.plan.pa_sps import PaSps
from foretide.topology import Operator, Topology

SPLIT = Topology(
    (Operator("o1"), Operator("o2", ("o1",)), Operator("o3", ("o1",)), Operator("o4", ("o2", "o3")))
)
SHARES = {("o1", "o2"): 0.7, ("o1", "o3"): 0.3, ("o2", "o4"): 0.4, ("o3", "o4"): 1.0}
THETA = {"o1": 1.0, "o2": 0.7, "o3": 0.3, "o4": 0.58}


def history(backlog=None, et=0.01, window_s=1.0):
    h = History(SPLIT)
    done = {n: 100 * t for n, t in THETA.items()}
    emitted = {n: {c: done[n] * s for (p, c), s in SHARES.items() if p == n} for n in SPLIT.names}
    samples = {
        n: Sample(done[n], done[n], (backlog or {}).get(n, 0.0), 1, emitted[n], busy_s=done[n] * et)
        for n in SPLIT.names
    }
    h.append(Snapshot(window_s, window_s, samples))
    return h


def test_worked_example_a_forecast_of_100_gives_100_70_30_58():
    plan = PaSps().plan(SPLIT, history(et=1.0), {"o1": Forecast((100.0,))})
    assert [r.split()[0] for r in plan.reasons.values()] == ["100", "70", "30", "58"]
    assert plan.replicas == {
        "o1": 32,
        "o2": 32,
        "o3": 30,
        "o4": 32,
    }  # et = 1 s: one replica per event, up to the pool of 32


def test_worked_example_of_figure_4_three_service_times():
    t = Topology((Operator("a"), Operator("b"), Operator("c")))
    h = History(t)
    et = {"a": 0.02, "b": 0.01, "c": 0.04}
    h.append(Snapshot(1.0, 1.0, {n: Sample(100, 100, 0, 2, busy_s=100 * et[n]) for n in t.names}))
    plan = PaSps().plan(t, h, dict.fromkeys(t.names, Forecast((100.0,))))
    assert plan.replicas == {"a": 2, "b": 1, "c": 4}


def test_the_horizon_is_the_planning_window():
    # 30 windows of 1 s, 200/s on average at 10 ms: 6,000 events in 30 s keep two replicas busy.
    plan = PaSps().plan(SPLIT, history(), {"o1": Forecast(tuple([100.0, 300.0] * 15))})
    assert plan.replicas["o1"] == 2
    assert "6000 events expected in 30 s" in plan.reasons["o1"]


def test_the_backlog_along_the_graph_is_added_once():
    plan = PaSps().plan(SPLIT, history({"o1": 100.0, "o3": 50.0}), {"o1": Forecast((100.0,))})
    assert plan.replicas == {"o1": 2, "o2": 2, "o3": 2, "o4": 2}
    assert "and 80 queued" in plan.reasons["o3"]
    assert "and 108 queued" in plan.reasons["o4"]


def printed_queued(topology, backlog, theta):
    """Equation 7 as printed (and as the authors' code has it): each predecessor's queue times that
    predecessor's own theta.
    """
    queued: dict[str, float] = {}
    for name in topology.order:
        queued[name] = backlog.get(name, 0.0) + sum(
            queued[p] * theta[p] for p in topology.predecessors(name)
        )
    return queued


def drained(topology, backlog, shares):
    """What really arrives: let every queue empty into the next operators, one whole event after
    another.
    """
    waiting = {n: backlog.get(n, 0.0) for n in topology.names}
    seen = dict(waiting)
    for name in topology.order:
        for successor in topology.successors(name):
            moved = waiting[name] * shares[(name, successor)]
            waiting[successor] += moved
            seen[successor] += moved
    return seen


def test_on_a_split_the_printed_equation_counts_events_that_go_elsewhere():
    backlog = {"o1": 1000.0, "o2": 100.0}
    truth = drained(SPLIT, backlog, SHARES)
    ours = Flow(SPLIT, SHARES).through(backlog)
    printed = printed_queued(SPLIT, backlog, THETA)
    assert ours == pytest.approx(truth)
    assert truth["o3"] == pytest.approx(300.0)
    assert printed["o3"] == pytest.approx(
        1000.0
    )  # every event of o1, although only 30 % go this way
    assert printed["o4"] != pytest.approx(truth["o4"], rel=0.1)


def test_pool_and_bounds():
    ahead = {"o1": Forecast((10_000.0,))}
    assert PaSps(pool=8).plan(SPLIT, history(), ahead).replicas == dict.fromkeys(SPLIT.names, 8)
    assert PaSps().plan(SPLIT, history(), {"o1": Forecast((0.0,))}).replicas == dict.fromkeys(
        SPLIT.names, 1
    )


def test_psps_plans_for_half_busy_replicas_and_forgets_the_backlog():
    psps = PaSps(backlog=False, utilization=0.5)
    plan = psps.plan(SPLIT, history({"o1": 1e6}), {"o1": Forecast((100.0,))})
    assert plan.replicas == {"o1": 2, "o2": 2, "o3": 1, "o4": 2}


def test_what_is_not_known_is_not_guessed():
    with pytest.raises(NotReady):
        PaSps().plan(SPLIT, History(SPLIT), {"o1": Forecast((1.0,))})
    with pytest.raises(NotReady, match="no forecast"):
        PaSps().plan(SPLIT, history(), {})
    with pytest.raises(InvalidConfig):
        PaSps(utilization=0.0)
