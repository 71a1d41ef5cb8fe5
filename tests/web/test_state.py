"""What the page shows against the journal's own records and the project's own figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tweets_world import TWEETS, tweets

from foretide.figures.metrics import figures
from foretide.figures.record import RunRecord
from foretide.journal import Run, encode, read
from foretide.model import Choice, Decision, Forecast, Latency, Plan, Sample, Snapshot
from foretide.topology import Operator, Topology
from foretide.web.lines import DecisionLine, decode
from foretide.web.prometheus import exposition
from foretide.web.records import ChoicesNow, State
from foretide.web.state import OVERALL, PER_OPERATOR, WHOLE_POINTS, Journalled, RunState

TWO = Topology((Operator("a"), Operator("b", inputs=("a",))))
RUN = Run("r", "srea", TWO, 10.0, 0.0)


def line(decision: Decision) -> DecisionLine:
    found = decode(encode(decision))
    assert isinstance(found, DecisionLine)
    return found


def two(at: float, a: float = 100.0, replicas: int = 2, **more: object) -> Decision:
    samples = {
        "a": Sample(a, a, 0, replicas, {"b": a}, busy_s=a * 0.1, offered=a),
        "b": Sample(a, a / 2, a / 2, 1, {}, busy_s=a * 0.05),
    }
    return Decision(at, "unchanged", "advise", Snapshot(at, 10.0, samples), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "journal.jsonl"
    tweets(path, windows=330)
    return path


def test_the_newest_window_is_the_journals(journal: Path) -> None:
    run, decisions = read(journal)
    state = RunState(run)
    for d in decisions:
        state.add(line(d))
    now, last = state.now(Journalled(), len(decisions)), decisions[-1]
    assert last.snapshot is not None
    assert last.plan is not None
    samples = last.snapshot.samples
    assert (now.at, now.outcome, now.mode, now.decisions) == (last.at, last.outcome, "act", 330)
    assert now.windows == 329  # one read failed
    assert now.load == pytest.approx((samples["parse"].offered or 0) / 10)
    assert now.replicas == sum(s.replicas for s in samples.values())
    assert now.planned == last.plan.total
    assert now.backlog == pytest.approx(sum(s.backlog for s in samples.values()))
    assert list(now.operators) == list(TWEETS.names)
    for name, o in now.operators.items():
        s = samples[name]
        assert (o.replicas, o.planned, o.backlog, o.rate) == (
            s.replicas,
            last.plan.replicas[name],
            s.backlog,
            s.arrived / 10,
        )
        assert o.utilization == pytest.approx((s.busy_s or 0) / (s.replicas * 10))
        assert o.feeds == pytest.approx({c: e / 10 for c, e in s.emitted.items()})
    assert now.latency is not None
    assert last.snapshot.latency is not None
    assert now.latency.p99_ms == last.snapshot.latency.p99_ms
    assert now.outlook is not None
    assert now.outlook.mean == list(last.forecasts["parse"].mean)
    assert now.outlook.upper == list(last.forecasts["parse"].upper or ())
    assert sum(now.outcomes.values()) == 330


def test_cost_and_share_within_target_are_the_reports(journal: Path) -> None:
    run, decisions = read(journal)
    state = RunState(run)
    for d in decisions:
        state.add(line(d))
    now, report = state.now(Journalled(), 0), figures(RunRecord.of_journal(run, decisions))
    assert now.cost.paid == pytest.approx(report.cost)
    assert now.latency is not None
    assert now.latency.within_share == pytest.approx(report.slo_share)


def test_series_follow_the_journal_and_a_failed_read_is_a_hole(journal: Path) -> None:
    run, decisions = read(journal)
    state = RunState(run)
    for d in decisions:
        state.add(line(d))
    overall, spam = state.columns("recent"), state.columns("recent", "spam")
    assert overall.at == [d.at for d in decisions] == spam.at
    assert set(overall.channels) == set(OVERALL)
    assert set(spam.channels) == set(PER_OPERATOR)
    for i, d in enumerate(decisions):
        if d.snapshot is None:
            assert overall.channels["load"][i] is None
            assert spam.channels["replicas"][i] is None
        else:
            assert overall.channels["load"][i] == pytest.approx(
                (d.snapshot.samples["parse"].offered or 0) / 10, rel=1e-5
            )
            assert spam.channels["replicas"][i] == d.snapshot.samples["spam"].replicas
    hole = next(i for i, d in enumerate(decisions) if d.snapshot is None)
    assert decisions[hole].outcome == "failed"
    assert state.columns("recent", last=3).at == overall.at[-3:]


def test_a_forecast_is_drawn_at_the_window_it_was_made_for() -> None:
    state = RunState(RUN)
    state.add(line(two(10, forecasts={"a": Forecast((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))})))
    for at in (20, 30):
        state.add(line(two(at)))
    state.add(line(two(40, forecasts={"a": Forecast((7.0,))})))
    state.add(line(two(50)))
    state.add(line(two(60)))
    columns = state.columns("recent").channels
    assert columns["forecast"] == [None, 1, 2, 3, 7, None]
    assert columns["upper"] == [None, 4, 5, 6, None, None]


def test_only_forecasts_of_all_sources_make_a_load_forecast() -> None:
    joined = Topology((Operator("a"), Operator("c"), Operator("b", inputs=("a", "c"))))
    state = RunState(Run("r", "s", joined, 10.0, 0.0))
    half = Decision(10, "waiting", "advise", forecasts={"a": Forecast((5.0,), (6.0,))})
    both = Decision(
        20,
        "waiting",
        "advise",
        forecasts={"a": Forecast((5.0,), (6.0,)), "c": Forecast((2.0,), (3.0,))},
    )
    state.add(line(half))
    assert state.now(Journalled(), 1).outlook is None
    state.add(line(both))
    ahead = state.now(Journalled(), 2).outlook
    assert ahead is not None
    assert (ahead.mean, ahead.upper) == ([7.0], [9.0])


def test_what_was_not_measured_is_none() -> None:
    state = RunState(RUN)
    empty = state.now(Journalled(), 0)
    assert (empty.load, empty.replicas, empty.latency, empty.outlook, empty.operators) == (
        None,
        None,
        None,
        None,
        {},
    )
    assert (empty.cost.paid, empty.cost.static_peak, empty.cost.saved_share) == (0.0, None, None)
    blind = {"a": Sample(5, 0, 5, 1), "b": Sample(0, 0, 0, 0)}
    state.add(
        line(Decision(10, "waiting", "advise", Snapshot(10, 10, blind), error="plan: too early"))
    )
    now = state.now(Journalled(), 1)
    assert (now.need, now.planned, now.error) == (None, None, "plan: too early")
    assert now.operators["b"].utilization is None
    assert now.operators["a"].need is None


def test_latency_of_the_worst_sink_stands_in_for_end_to_end() -> None:
    fork = Topology((Operator("a"), Operator("x", inputs=("a",)), Operator("y", inputs=("a",))))
    state = RunState(Run("r", "s", fork, 10.0, 0.0))
    samples = {
        "a": Sample(10, 10, 0, 1),
        "x": Sample(10, 10, 0, 1, latency=Latency(10, 1, 1, 9, 10, 10)),
        "y": Sample(10, 10, 0, 1, latency=Latency(30, 1, 2, 3, 40, 20), dropped=10),
    }
    state.add(line(Decision(10, "observed", "advise", Snapshot(10, 10, samples))))
    latency = state.now(Journalled(), 1).latency
    assert latency is not None
    assert (latency.p50_ms, latency.p90_ms, latency.p99_ms, latency.within_share) == (2, 9, 40, 0.6)


def test_a_plan_is_kept_between_two_plans() -> None:
    state = RunState(RUN)
    plan = Plan({"a": 3, "b": 2})
    state.add(line(two(10, proposed=plan, plan=plan)))
    state.add(line(two(20)))
    assert state.now(Journalled(), 2).planned == 5
    assert state.columns("recent", "a").channels["planned"] == [3, 3]


def test_a_day_of_windows_fits_in_bounded_series() -> None:
    state = RunState(RUN)
    for i in range(3000):
        state.add(line(two(float(i + 1), replicas=9 if i == 1234 else 2)))
    whole, recent = state.columns("whole"), state.columns("recent")
    assert len(whole.at) <= WHOLE_POINTS
    assert whole.windows_per_point == 4
    assert (
        max(v or 0 for v in whole.channels["replicas"]) == 10
    )  # the peak of one window is not lost
    assert (whole.at[-1], recent.at[-1], len(recent.at)) == (3000.0, 3000.0, 600)
    assert whole.channels["cost"][-1] == recent.channels["cost"][-1]


def test_notable_decisions_are_those_a_person_wants_to_read() -> None:
    plan, less = Plan({"a": 3, "b": 2}), Plan({"a": 2, "b": 2})
    assert not line(two(10, proposed=plan, plan=plan)).notable
    assert line(two(10, proposed=less, plan=plan)).notable
    assert line(Decision(1, "failed", "act", error="read: gone")).notable
    assert not line(Decision(1, "waiting", "act", error="read: too early")).notable
    assert decode(b'{"decision":{"at":1}}\n') is None
    assert decode(b'{"decision":{"at":1,"outcome":"unch') is None


def test_the_price_of_other_promises_stays_until_the_planner_works_it_out_again() -> None:
    def priced(at: float, cost: float) -> Decision:
        plan = Plan({"a": 2, "b": 1}, {"": f"99 % for {cost:g}"}, choices=(Choice(0.99, cost),))
        guarded = replace(plan, reasons={"": "held back"}, choices=())
        return two(at, proposed=plan, plan=guarded)

    state = RunState(RUN)
    state.add(line(two(10.0, proposed=Plan({"a": 2, "b": 1}), plan=Plan({"a": 2, "b": 1}))))
    assert state.now(Journalled(), 1).choices is None
    for d in (priced(20.0, 1.5), two(30.0), priced(40.0, 1.25), two(50.0)):
        state.add(line(d))
    now = state.now(Journalled(), 5)
    assert now.choices == ChoicesNow(40.0, "99 % for 1.25", [0.99], [1.25])
    page = exposition(State(state.info(), now))
    assert 'foretide_promise_cost_ratio{share="0.99"} 1.25' in page
