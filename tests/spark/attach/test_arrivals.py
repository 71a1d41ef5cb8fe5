"""Arrivals from reports: a steady load must read as steady, however the batches lie."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import kafka_query, offsets, report

from foretide.spark.attach.arrivals import (
    ArrivalCurve,
    QueryArrivals,
    latency_of,
    trigger_interval_s,
)


def window_rates(reports, window_s, until_s, poll=None):
    """Events/s of every window as a loop would read them: only reports of ended batches are
    known.
    """
    arrivals, rates, waiting = QueryArrivals(), [], list(reports)
    for now in np.arange(window_s, until_s, window_s):
        while waiting and waiting[0].ended_at <= now:
            arrivals.add(waiting.pop(0))
        if arrivals.known and poll:
            arrivals.polled(now, [offsets(int(poll(now)))])
        if arrivals.known:
            rates.append(arrivals.between(now - window_s, now) / window_s)
    return np.array(rates)


@pytest.mark.parametrize("window_s", [1.0, 3.0, 5.0, 10.0])
@pytest.mark.parametrize("batch_s", [0.5, 1.7, 7.0, 21.0])
@pytest.mark.parametrize("polled", [True, False])
def test_a_steady_load_reads_as_steady(window_s, batch_s, polled) -> None:
    """60 events/s at a 2 s trigger: counted when batches end, 10 s windows read 48, 72, 48, 72 and
    long batches 0, 220, 374.
    """

    def arrived(t):
        return 60.0 * t

    reports = kafka_query(arrived, lambda events: batch_s, 2.0, 300.0)
    rates = window_rates(reports, window_s, 240.0, arrived if polled else None)
    assert len(rates) > 10
    assert np.abs(rates / 60.0 - 1).max() < 0.03


@settings(max_examples=30)
@given(
    took=st.lists(st.floats(0.1, 12.0), min_size=40, max_size=40), rate=st.floats(5.0, 500.0)
)  # fmt: skip
def test_sources_without_offsets_read_as_steady_too(took, rate) -> None:
    """Every batch takes in what came since the last one was planned."""
    reports, start, before = [], 0.0, -2.0
    for i, seconds in enumerate(took):
        reports.append(report("q", start, seconds, rate * (start - before), batch_id=i))
        before, start = start, start + max(2.0, seconds)
    rates = window_rates(reports, 5.0, start)
    assert np.abs(rates / rate - 1).max() < 1e-6


def test_a_step_is_seen_at_once_where_offsets_are_polled() -> None:
    def arrived(t):
        return 60.0 * min(t, 60.0) + 240.0 * max(0.0, t - 60.0)

    reports = list(kafka_query(arrived, lambda events: 0.3 + 0.01 * events, 2.0, 120.0))
    rates = window_rates(reports, 5.0, 100.0, arrived)
    assert rates[: 60 // 5 - 1] == pytest.approx(60.0, rel=0.03)
    assert rates[-7:] == pytest.approx(240.0, rel=0.03)


def test_what_waits_is_what_came_and_is_not_done() -> None:
    arrivals = QueryArrivals()
    arrivals.add(report(start=0.0, events=100, latest=100_000, end=100))
    arrivals.add(report(start=2.0, events=100, batch_id=1, latest=100_120, end=200))
    assert arrivals.backlog(2.0) == 99_920
    assert arrivals.backlog(4.0) == pytest.approx(99_920 + 2 * 60)
    arrivals.polled(5.0, [offsets(101_000)])
    assert arrivals.backlog(5.0) == 100_800
    arrivals.add(report(start=4.0, events=100, batch_id=2, latest=100_240, end=300))
    assert arrivals.backlog(5.0) == 100_700, "a report older than the poll does not undo it"


def test_a_silent_source_is_not_extrapolated() -> None:
    arrivals = QueryArrivals()
    arrivals.add(report(start=0.0, events=100))
    arrivals.add(report(start=2.0, events=120, batch_id=1))
    assert arrivals.between(2.0, 7.0) == pytest.approx(300.0)
    arrivals.silent(7.0)
    assert arrivals.between(2.0, 7.0) == 0.0
    arrivals.silent(12.0)
    assert arrivals.between(12.0, 17.0) == 0.0


def test_a_topic_created_anew_and_partitions_that_come_and_go_never_lose_events() -> None:
    arrivals = QueryArrivals()
    arrivals.add(report(latest=100, end=100))
    arrivals.polled(2.0, [{"t/0": 5, "t/1": 60}])  # t/0 fell from 50: created anew
    arrivals.polled(4.0, [{"t/0": 15, "t/1": 70, "t/2": 10}])
    arrivals.polled(6.0, [{"t/0": 25}])
    assert arrivals.between(0.0, 2.0) >= 0
    assert arrivals.between(2.0, 4.0) == pytest.approx(30)
    assert arrivals.between(4.0, 6.0) == pytest.approx(10)


def test_ages_follow_the_curve_also_behind_a_lag() -> None:
    """120 events of 2 s, done 1 s after the batch began: 1 to 3 s old; a lagging batch is older."""
    arrivals = QueryArrivals()
    arrivals.add(report(start=0.0, latest=1000, end=1000))
    ages = arrivals.add(report(start=2.0, events=120, batch_id=1, latest=1120, end=1120))
    latency = latency_of(ages, target_s=2.0)
    assert latency is not None
    assert latency.mean_ms == pytest.approx(2000)
    assert latency.p90_ms == pytest.approx(2800, abs=60)
    assert latency.within == pytest.approx(60)
    arrivals.add(report(start=4.0, events=0.001, batch_id=2, latest=1240, end=1120))
    late = latency_of(
        arrivals.add(report(start=12.0, events=120, batch_id=3, latest=1720, end=1240)), 5.0
    )
    assert late is not None
    assert late.mean_ms == pytest.approx(1000 * (13 - 3))
    assert late.within == 0
    assert latency_of([], None) is None


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0, 500)), min_size=2, max_size=40))
def test_the_curve_never_falls_and_its_inverse_is_its_inverse(steps) -> None:
    curve, at, count = ArrivalCurve(), 0.0, 0.0
    for seconds, events in steps:
        curve.add(at, count)
        at, count = at + seconds, count + events
    grid = np.linspace(-1.0, at + 5.0, 50)
    counts = [curve.at(t) for t in grid]
    assert all(b >= a for a, b in pairwise(counts))
    for t in grid:
        assert curve.at(curve.when(curve.at(t))) == pytest.approx(curve.at(t), abs=1e-6)


def test_the_trigger_is_the_least_time_a_query_waited() -> None:
    waits = [report(start=s, took=0.5, batch_id=i) for i, s in enumerate((0.0, 2.0, 4.0, 8.0))]
    assert trigger_interval_s(waits) == 2.0
    busy = [report(start=3.0 * i, took=3.0, batch_id=i) for i in range(4)]
    assert trigger_interval_s(busy) == 0.0
    assert trigger_interval_s(busy[:1]) is None
