"""Executors for watched queries: the load of a day in a minute, lags, limits, several queries."""

import math
from itertools import pairwise

import pytest
from watched_query import WatchedQuery

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import BatchRun, Forecast, Sample, Snapshot, StageRun
from foretide.plan.batch_latency import Demand, keeps, outlook
from foretide.plan.batch_model import BatchModel
from foretide.plan.micro_batch import MicroBatch
from foretide.systems import system
from foretide.topology import Operator, Topology

ONE = Topology((Operator("q"),))


def followed(query: WatchedQuery, seconds: float, planner: MicroBatch, window_s: float = 5.0):
    """(instant, executors asked for, plan) for every window in which there was a plan."""
    asked = []
    for _ in range(int(seconds / window_s)):
        snapshot = query.window(window_s)
        try:
            plan = planner.plan(query.topology, query.history, {})
        except NotReady:
            continue
        assert plan.executors is not None
        query.ask(plan.executors)
        asked.append((snapshot.at, plan.executors, plan))
    return asked


def step(t: float) -> float:
    return 240.0 if 60.0 <= t < 150.0 else 60.0


def executors_only(max_executors: int = 4, **more) -> MicroBatch:
    return MicroBatch(10.0, max_executors=max_executors, unit="executors", **more)


def test_60_to_240_to_60_events_per_second():
    """One busy executor, then three, then one: within 30 s of a change within one of the need, and
    steady between.
    """
    query = WatchedQuery(step)
    asked = followed(query, 240.0, executors_only())
    for start, end, need in ((30.0, 60.0, 1), (90.0, 150.0, 3), (180.0, 240.0, 1)):
        seen = {executors for at, executors, _ in asked if start <= at < end}
        assert len(seen) == 1, f"{start} to {end} s: {seen}"
        assert all(need <= e <= need + 1 for e in seen)
    errors = [plan.model_error for _, _, plan in asked if plan.model_error is not None]
    assert errors[-1] < 0.15
    late = [s.samples["q"].backlog for s in query.history.recent() if 100 <= s.at < 150]
    assert max(late) < 240 * 10


@pytest.mark.parametrize("per_task_s", [0.02, 0.06, 0.1])
def test_a_jvm_that_warms_up_is_no_reason_to_keep_executors(per_task_s):
    """Four executors are there and the first batches take several times as long as later ones:
    within 30 s the advice is within one executor of the need, and never rises again.
    """
    query = WatchedQuery(
        lambda t: 60.0, executors=4, per_task_s=per_task_s, warm_up=6.0, noise=0.15
    )
    asked = [(at, executors) for at, executors, _ in followed(query, 120.0, executors_only())]
    assert {executors for at, executors in asked if at >= 30.0} <= {1, 2}
    assert asked[0][1] == 4, "what is there is kept until batches say otherwise"
    assert all(b <= a for (_, a), (_, b) in pairwise(asked))


def test_the_reason_says_what_executors_do_for_a_batch():
    query = WatchedQuery(lambda t: 60.0)
    plan = followed(query, 60.0, executors_only())[-1][2]
    assert plan.replicas == {"q": 1}, "queries that are only watched have no replicas to set"
    assert (
        "60.0 events/s expected; a batch of 120 events takes 1.7 s on 1 slot, 1."
        in (plan.reasons["q"])
    )
    assert "99 % of events are done within 3." in plan.reasons["q"]
    assert "1 executor with 1 core each (another one would work in 7 s)" in plan.reasons[""]


def test_a_lag_of_100_000_events_is_worked_off_as_fast_as_partitions_allow_and_then_given_back():
    query = WatchedQuery(lambda t: 60.0, waiting=100_000.0, limit=2000.0)
    asked = followed(query, 700.0, executors_only(max_executors=16))
    most = max(executors for _, executors, _ in asked)
    assert most == 8, "8 partitions cannot use more than 8 slots"
    said = " ".join(plan.reasons["q"] for at, _, plan in asked if at < 60)
    assert "8 partitions cannot use more than 8 slots" in said or "raise maxOffsets" in said
    done_at = next(s.at for s in query.history.recent() if s.samples["q"].backlog < 1000)
    after = [executors for at, executors, _ in asked if at > done_at + 120.0]
    assert after
    assert set(after) <= {1, 2}


def test_a_limit_on_the_events_of_a_batch_is_said():
    query = WatchedQuery(lambda t: 240.0, limit=300.0, executors=4)
    reason = followed(query, 90.0, executors_only(max_executors=8))[-1][2].reasons["q"]
    assert "a batch takes in at most 300 events: raise maxOffsetsPerTrigger to" in reason
    assert "more executors will not help" in reason


def test_partitions_that_cannot_carry_the_load_are_said():
    query = WatchedQuery(lambda t: 300.0, tasks=2, executors=2)
    executors, plan = followed(query, 90.0, executors_only(max_executors=8))[-1][1:]
    assert executors == 2
    assert "2 partitions cannot use more than 2 slots: raise partitions to" in plan.reasons["q"]


def test_a_target_below_the_micro_batch_floor_is_said():
    query = WatchedQuery(lambda t: 60.0, trigger_s=5.0)
    plan = followed(query, 60.0, MicroBatch(3.0, max_executors=4, unit="executors"))[-1][2]
    assert "No number of slots can meet 3 s" in plan.reasons["q"]
    assert "shorten the trigger to 1." in plan.reasons["q"]


def test_the_maximum_holds_and_is_said():
    query = WatchedQuery(lambda t: 240.0)
    plan = followed(query, 60.0, executors_only(max_executors=2))[-1][2]
    assert plan.executors == 2
    assert "held at the maximum of 2" in plan.reasons[""]


def test_fewer_executors_are_waited_for_as_long_as_starting_one_takes():
    query = WatchedQuery(step, lead_s=40.0)
    asked = followed(query, 300.0, executors_only())
    kept = [at for at, executors, _ in asked if at >= 155.0 and executors >= 3]
    assert 185.0 <= max(kept) <= 215.0
    held = next(plan for at, _, plan in asked if at >= 170.0)
    assert "an idle executor costs less than starting one again (40 s)" in held.reasons[""]


def test_a_forecast_is_planned_for_as_far_ahead_as_an_executor_takes():
    query = WatchedQuery(lambda t: 60.0, lead_s=10.0)
    planner = executors_only()
    followed(query, 60.0, planner)
    near = Forecast((60.0, 60.0, 240.0, 60.0))
    far = Forecast((60.0, 60.0, 60.0, 240.0))
    assert planner.plan(ONE, query.history, {"q": far}).executors == 1
    assert (planner.plan(ONE, query.history, {"q": near}).executors or 0) >= 3


@pytest.mark.parametrize(
    ("lead_s", "seconds", "executors"), [(5.0, 60.0, 1), (40.0, 900.0, 4), (40.0, 600.0, 1)]
)
def test_the_upper_quantile_counts_where_events_cannot_wait_for_an_executor(
    lead_s, seconds, executors
):
    """... and where 20 lead times were seen: in less, one jump of the load is the quantile."""
    ahead = {"q": Forecast((60.0,) * 12, (240.0,) * 12)}
    query = WatchedQuery(lambda t: 60.0, lead_s=lead_s)
    planner = executors_only()
    followed(query, seconds, planner)
    plan = planner.plan(ONE, query.history, ahead)
    assert abs((plan.executors or 0) - executors) <= 1


def test_one_jump_of_the_load_is_not_planned_for_again_and_again():
    """The lead time is as long as the target, so that the upper quantile counts: a minute at four
    times the load, and half a minute later the plan is back at the need, forecasts included.
    """
    query = WatchedQuery(lambda t: 240.0 if 300 <= t < 360 else 60.0, lead_s=10.0, executors=2)
    planner = executors_only()
    forecaster = system("attach").new_forecaster()
    asked = []
    for _ in range(160):
        snapshot = query.window(5.0)
        ahead = {"q": forecaster.forecast(query.history.rates("q")[-300:], 4)}
        plan = planner.plan(ONE, query.history, ahead)
        assert plan.executors is not None
        query.ask(plan.executors)
        asked.append((snapshot.at, plan.executors))
    assert max(e for at, e in asked if 310 <= at < 360) >= 3
    assert {e for at, e in asked if at >= 400} <= {1, 2}


def test_it_goes_on_with_what_it_learned():
    query = WatchedQuery(lambda t: 60.0)
    planner = executors_only()
    followed(query, 60.0, planner)
    again = executors_only()
    again.restore(planner.state())
    fresh = WatchedQuery(lambda t: 240.0, executors=3)
    fresh.window(5.0)
    plan = again.plan(ONE, fresh.history, {})
    assert plan.executors in (3, 4)
    assert plan.model_error is not None


def two_queries(small: bool) -> History:
    both = Topology((Operator("clean"), Operator("report")))
    h = History(both)
    events = 20.0 if small else 400.0
    for i in range(6):
        stage = StageRun(4, 0.04 + 0.01 * events, 0.04 + 0.01 * events)
        run = BatchRun(2.0 * i, 0.2 + stage.wall_s, events, 1, (stage,))
        sample = Sample(
            events, events, 0, 1, busy_s=stage.task_s, batches=1, batch_s=1.0,
            batch_runs=(run,), trigger_s=2.0,
        )  # fmt: skip
        h.append(Snapshot(2.0 * i, 2.0, {"clean": sample, "report": sample}, slots=1, lead_s=5.0))
    return h


def test_small_queries_share_an_executor():
    h = two_queries(small=True)
    assert executors_only().plan(h.topology, h, {}).executors == 1


def test_every_query_has_its_target_and_the_least_critical_gives_way():
    h = two_queries(small=False)
    planner = executors_only(2, targets={"clean": 5.0, "report": 60.0})
    plan = planner.plan(h.topology, h, {})
    assert plan.executors == 2
    assert "(target 60 s)" in plan.reasons["report"] or "events/s" in plan.reasons["report"]
    assert "held at the maximum of 2, report gives way first" in plan.reasons[""]
    dear = executors_only(2, targets={"clean": 5.0, "report": 60.0}, priorities={"report": 1.0})
    assert "clean gives way first" in dear.plan(h.topology, h, {}).reasons[""]


def test_windows_with_means_alone_are_enough():
    """1000 events in 10 batches of 0.8 s on 4 slots, 20 busy seconds: 0.3 s of each is fixed."""
    h = History(ONE)
    h.append(
        Snapshot(10.0, 10.0, {"q": Sample(1000, 1000, 0, 4, busy_s=20.0, batches=10, batch_s=0.8)})
    )
    plan = MicroBatch(target_s=1.8, cores=3).plan(ONE, h, {"q": Forecast((150.0, 200.0))})
    assert plan.executors is not None
    assert 2 <= plan.executors <= 4
    assert plan.replicas["q"] >= 5


def test_nothing_known_is_not_ready():
    h = History(ONE)
    h.append(Snapshot(10.0, 10.0, {"q": Sample(0, 0, 0, 4)}))
    with pytest.raises(NotReady, match="has not finished a batch"):
        MicroBatch().plan(ONE, h, {})


@pytest.mark.parametrize("rate", [30.0, 90.0, 200.0, 330.0])
def test_the_steady_state_is_that_of_the_arithmetic(rate):
    """Against the query itself, run for ten minutes without noise on 4 slots."""
    query = WatchedQuery(lambda t: rate, executors=4, noise=0.0)
    model = BatchModel()
    for _ in range(120):
        for run in query.window(5.0).samples["q"].batch_runs:
            model.observe(run)
    demand = Demand(rate, 0.0, 2.0, math.inf, 10.0)
    view = outlook(model, demand, 4)
    last = query.history.latest.samples["q"].batch_runs[-1]
    assert view.events == pytest.approx(last.events, rel=0.1)
    assert view.batch_s == pytest.approx(last.duration_s, rel=0.1)
    assert keeps(view, demand)
