"""Figures of a run small enough to work out by hand; the arithmetic stands beside each number."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from foretide.figures.metrics import Figures, figures, optimum_cost
from foretide.figures.record import RunRecord, measured_needs
from foretide.journal import Run
from foretide.model import (
    Decision,
    Forecast,
    Host,
    Latency,
    Prices,
    Sample,
    Snapshot,
    WindowPrices,
)
from foretide.plan.optimum import schedule_cost
from foretide.topology import Operator, Topology

CHAIN = Topology((Operator("a"), Operator("b", ("a",))))


def snapshot(at: float, a: Sample, b: Sample, **more: object) -> Snapshot:
    return Snapshot(at, 10.0, {"a": a, "b": b}, **more)  # type: ignore[arg-type]


SNAPSHOTS = (
    snapshot(
        10,
        Sample(100, 100, 0, 1, {"b": 50}, busy_s=5.0, offered=100),
        Sample(50, 50, 0, 1, busy_s=5.0),
    ),
    snapshot(
        20,
        Sample(200, 150, 50, 2, {"b": 75}, busy_s=7.5, offered=200),
        Sample(75, 70, 5, 1, busy_s=7.0),
    ),
    snapshot(
        30,
        Sample(100, 150, 0, 2, {"b": 75}, busy_s=7.5, offered=100),
        Sample(75, 80, 0, 1, busy_s=8.0),
    ),
)
DECISIONS = tuple(
    Decision(s.at, "applied", "act", s, {"a": Forecast((rate, 99.0))})
    for s, rate in zip(SNAPSHOTS, (12.0, 20.0, 77.0), strict=True)
)
RECORD = RunRecord(
    "by-hand",
    CHAIN,
    10.0,
    SNAPSHOTS,
    DECISIONS,
    {"a": np.array([1, 2, 1]), "b": np.array([1, 1, 1])},
    start={"a": 1, "b": 1},
    latencies_ms=np.array([100.0, 10.0, 20.0, 40.0, 30.0]),
    target_latency_s=0.05,
    share=0.8,
    prices=WindowPrices().per_second(10.0),
)


def test_golden_figures_by_hand() -> None:
    assert figures(RECORD) == Figures(
        "by-hand",
        cost=69_100.0,  # a: 5 * 8000 + 5000 up + 100 route = 45100; b: 3 * 8000
        cost_ratio=69_100
        / 66_200,  # best for a is 1, 2, 1: 4 * 8000 + 5000 + 5000 + 2 * 100 = 42200
        replica_seconds=80.0,  # (1 + 1 + 2 + 1 + 2 + 1) * 10
        adaptations=1,  # only the second window differs from the one before
        saved_resources=pytest.approx(1 - (8 / 3) / 3),  # mean 8/3 replicas; the peak needs 2 + 1
        # b should see 50, 100, 50 and processes 50, 70, 80
        throughput_degradation=pytest.approx((0 + 30 / 100 + 30 / 80) / 3),
        processed_share=1.0,  # 200 of 200
        latency_mean_ms=40.0,
        latency_p50_ms=30.0,
        latency_p90_ms=100.0,
        latency_p99_ms=100.0,
        slo_share=0.8,  # 4 of 5 within 50 ms
        input_mape=pytest.approx(0.7),  # 12 for 20 and 20 for 10: (0.4 + 1.0) / 2
        replica_mape=pytest.approx(1 / 6),  # a: 0, 0, 1; b: never off
        utilization_mean=pytest.approx((10 / 20 + 14.5 / 30 + 15.5 / 30) / 3),
        utilization_max=pytest.approx((0.5 + 0.7 + 0.8) / 3),
        need_share=1.0,  # never below the need
        saved_cost=pytest.approx(1 - 69_100 / 72_000),  # 3 replicas x 3 windows x 8000
    )


def test_names_and_order_are_the_contract_of_compare_json() -> None:
    assert list(figures(RECORD).as_dict()) == [
        "system", "cost", "cost_ratio", "target_cost_ratio", "replica_seconds", "adaptations",
        "saved_resources", "throughput_degradation", "processed_share", "latency_mean_ms",
        "latency_p50_ms", "latency_p90_ms", "latency_p99_ms", "slo_share", "input_mape",
        "replica_mape", "utilization_mean", "utilization_max", "need_share", "saved_cost",
    ]  # fmt: skip


def test_what_was_not_measured_is_none() -> None:
    bare = tuple(
        Snapshot(s.at, 10.0, {n: replace(x, busy_s=None) for n, x in s.samples.items()})
        for s in SNAPSHOTS
    )
    f = figures(replace(RECORD, snapshots=bare, decisions=(), latencies_ms=None))
    missing = {
        "latency_mean_ms",
        "latency_p50_ms",
        "latency_p90_ms",
        "latency_p99_ms",
        "slo_share",
        "input_mape",
    }
    missing |= {"utilization_mean", "utilization_max"}
    missing |= {"target_cost_ratio"}  # only a comparison has the cheapest schedule for the target
    assert {k for k, v in f.as_dict().items() if v is None} == missing
    nothing = figures(
        replace(RECORD, snapshots=(), needs={"a": np.array([], int), "b": np.array([], int)})
    )
    assert nothing == Figures("by-hand")


def test_a_run_that_kept_less_than_it_promised_saved_nothing() -> None:
    assert figures(replace(RECORD, share=0.81)).saved_resources is None
    assert figures(replace(RECORD, share=None)).saved_resources is None  # 99 % is expected then
    below = {"a": np.array([1, 3, 1]), "b": np.array([1, 1, 1])}
    f = figures(replace(RECORD, needs=below, share=0.8))
    assert f.need_share == pytest.approx(7 / 8)
    assert f.saved_resources == pytest.approx(1 - (8 / 3) / 4)
    much_below = {"a": np.array([1, 9, 1]), "b": np.array([1, 1, 1])}
    assert figures(replace(RECORD, needs=much_below)).saved_resources is None


def test_draining_a_queue_is_no_degradation_above_100_percent() -> None:
    lull = tuple(
        replace(s, samples={**s.samples, "b": replace(s.samples["b"], processed=out)})
        for s, out in zip(SNAPSHOTS, (1.0, 1.0, 5000.0), strict=True)
    )
    f = figures(replace(RECORD, snapshots=lull))
    assert f.throughput_degradation is not None
    assert 0.95 < f.throughput_degradation < 1


def test_dropped_events_met_no_target_and_count_as_unprocessed() -> None:
    lossy = list(SNAPSHOTS)
    lossy[2] = snapshot(30, SNAPSHOTS[2].samples["a"], Sample(75, 40, 0, 1, dropped=40))
    f = figures(replace(RECORD, snapshots=tuple(lossy)))
    assert f.processed_share == pytest.approx(160 / 200)
    assert f.slo_share == pytest.approx(4 / 45)


def test_window_summaries_give_the_mean_but_no_percentiles() -> None:
    summaries = (
        Latency(10, 20, 20, 30, 40, within=10),
        Latency(30, 40, 20, 30, 400, within=15),
        None,
    )
    windows = tuple(
        replace(s, latency=latency) for s, latency in zip(SNAPSHOTS, summaries, strict=True)
    )
    f = figures(replace(RECORD, snapshots=windows, latencies_ms=None))
    assert (f.latency_mean_ms, f.latency_p50_ms, f.latency_p99_ms) == (35.0, None, None)
    assert f.slo_share == pytest.approx(25 / 40)


def test_windows_longer_than_planned_have_the_rates_they_had() -> None:
    """The same counts in windows of 20 s are half the rates: 12 for 10 and 20 for 5 events/s."""
    slow = tuple(replace(s, at=2 * s.at, window_s=20.0) for s in SNAPSHOTS)
    decisions = tuple(replace(d, at=s.at, snapshot=s) for d, s in zip(DECISIONS, slow, strict=True))
    assert figures(
        replace(RECORD, snapshots=slow, decisions=decisions)
    ).input_mape == pytest.approx((0.2 + 3.0) / 2)


def test_an_event_that_takes_exactly_the_target_is_within_it() -> None:
    kept = (
        np.array([0.1, 0.2, 0.3, 0.4], np.float32).astype(float) * 1e3
    )  # as the simulator keeps them
    assert figures(replace(RECORD, latencies_ms=kept, target_latency_s=0.3)).slo_share == 0.75


def test_hosts_give_the_utilization_where_they_are_known() -> None:
    hosts = ((Host("x", 0.2), Host("y", 0.6)), (Host("x", 0.9),), (Host("x", 0.1), Host("y", 0.3)))
    windows = tuple(replace(s, hosts=h) for s, h in zip(SNAPSHOTS, hosts, strict=True))
    f = figures(replace(RECORD, snapshots=windows))
    assert f.utilization_mean == pytest.approx((0.4 + 0.9 + 0.2) / 3)
    assert f.utilization_max == pytest.approx((0.6 + 0.9 + 0.3) / 3)


def test_a_loop_without_a_sink_is_judged_by_all_its_operators() -> None:
    loop = Topology((Operator("first", ("second",), source=True), Operator("second", ("first",))))
    samples = {
        "first": Sample(125, 125, 0, 1, {"second": 125}, offered=100),
        "second": Sample(125, 125, 0, 1, {"first": 25}),
    }
    record = RunRecord(
        "loop",
        loop,
        10.0,
        (Snapshot(10, 10.0, samples),),
        (),
        dict.fromkeys(loop.names, np.array([1])),
    )
    assert record.account.should_leave(np.array([100.0, 0.0])) == pytest.approx(250)
    assert figures(record).processed_share == pytest.approx(1.0)
    assert figures(record).throughput_degradation == pytest.approx(0.0, abs=1e-12)


def test_needs_of_a_live_run_come_from_what_was_measured() -> None:
    needs = measured_needs(CHAIN, SNAPSHOTS)  # a: 10, 20, 10 /s at 0.05 s; b: half of it at 0.1 s
    assert {n: v.tolist() for n, v in needs.items()} == {"a": [1, 1, 1], "b": [1, 1, 1]}
    run = Run("live", "srea", CHAIN, 10.0, 0.0, target_latency_s=0.05)
    earlier = Decision(0, "observed", "act", Snapshot(0, 10.0, {"other": Sample(1, 1, 0, 1)}))
    record = RunRecord.of_journal(
        run, [earlier, *DECISIONS, Decision(40, "failed", "act", error="read: gone")]
    )
    assert (len(record.snapshots), len(record.decisions)) == (3, 4)
    assert figures(record).replica_seconds == 80.0


def test_the_optimum_equals_brute_force_over_two_operators() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        windows, prices = int(rng.integers(1, 5)), Prices(*rng.integers(0, 30, 4).astype(float))
        needs = {n: rng.integers(1, 4, windows) for n in CHAIN.names}
        start = {n: int(rng.integers(1, 4)) for n in CHAIN.names}
        snapshots = (SNAPSHOTS * 2)[:windows]
        record = RunRecord("any", CHAIN, 10.0, snapshots, (), needs, start, prices=prices)
        best = sum(
            min(
                schedule_cost(s, prices.per_window(10.0), start[n])
                for s in product(*(range(w, 5) for w in needs[n].tolist()))
            )
            for n in CHAIN.names
        )
        assert optimum_cost(record) == pytest.approx(best)
        assert all((record.optimum[n] >= needs[n]).all() for n in CHAIN.names)


def test_a_run_after_its_first_windows_is_a_run_that_began_with_what_there_was() -> None:
    """Of the three windows the last two: a runs 2, 2 after 1, b stays at 1."""
    rest = RECORD.since(1)
    assert [s.at for s in rest.snapshots] == [20, 30]
    assert [d.at for d in rest.decisions] == [20, 30]
    assert rest.start == {"a": 1, "b": 1}
    assert rest.needs["a"].tolist() == [2, 1]
    assert figures(rest).replica_seconds == 60.0
    assert figures(RECORD.since(2)).replica_seconds == 30.0
    assert RECORD.since(0) is RECORD
