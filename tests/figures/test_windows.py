from dataclasses import replace

import pytest

from foretide.figures.windows import merged
from foretide.model import Decision, Forecast, Host, Latency, Plan, Sample, Snapshot

FIRST = Sample(
    10,
    8,
    2,
    1,
    {"b": 4},
    busy_s=0.5,
    offered=10,
    replica_busy_s=(0.5,),
    latency=Latency(8, 10, 9, 20, 30, within=8),
)
SECOND = Sample(
    20, 22, 0, 2, {"b": 11}, busy_s=1.0, offered=20, dropped=3, replica_busy_s=(0.6, 0.4)
)


def decision(at: float, sample: Sample | None, **more: object) -> Decision:
    seen = None if sample is None else Snapshot(at, 1.0, {"a": sample}, latency=sample.latency)
    return Decision(at, "observed", "act", seen, **more)  # type: ignore[arg-type]


def test_counts_add_up_and_the_last_state_stays() -> None:
    plan = Plan({"a": 2})
    last = decision(
        2.0, SECOND, plan=plan, forecasts={"a": Forecast((10.0, 30.0, 99.0), (20.0, 40.0, 99.0))}
    )
    one = merged([decision(1.0, FIRST), last])
    assert (one.at, one.plan, one.forecasts) == (2.0, plan, {"a": Forecast((20.0,), (30.0,))})
    assert one.snapshot == Snapshot(
        2.0,
        2.0,
        {
            "a": Sample(
                30,
                30,
                0,
                2,
                {"b": 15},
                busy_s=1.5,
                offered=30,
                dropped=3,
                latency=FIRST.latency,
                replica_busy_s=(1.1, 0.4),
            )
        },
        latency=FIRST.latency,
    )


def test_lead_time_slots_and_parallelism_are_the_newest_known() -> None:
    first = Snapshot(
        1.0, 1.0, {"a": replace(FIRST, max_parallelism=3)}, latency=None, lead_s=40.0, slots=4
    )
    second = Snapshot(2.0, 1.0, {"a": SECOND}, lead_s=20.0)
    whole = merged(
        [Decision(1.0, "observed", "act", first), Decision(2.0, "observed", "act", second)]
    ).snapshot
    assert whole is not None
    assert (whole.lead_s, whole.slots) == (20.0, 4)
    assert whole.samples["a"].max_parallelism == 3


def test_one_observation_is_itself() -> None:
    only = decision(1.0, FIRST)
    assert merged([only]) is only


def test_latency_keeps_count_and_mean_and_the_largest_percentile() -> None:
    late = replace(SECOND, latency=Latency(24, 50, 40, 60, 90, within=12))
    snapshot = merged([decision(1.0, FIRST), decision(2.0, late)]).snapshot
    assert snapshot is not None
    assert snapshot.latency == Latency(32, 40, 40, 60, 90, within=20)


def test_a_failed_read_is_left_out() -> None:
    one = merged([decision(1.0, FIRST), decision(2.0, None)])
    assert one.snapshot is not None
    assert (one.snapshot.window_s, one.snapshot.samples["a"].arrived) == (1.0, 10)
    assert merged([decision(1.0, None), decision(2.0, None)]).snapshot is None


def test_hosts_have_their_mean_over_the_time_they_were_there() -> None:
    early = Snapshot(3.0, 3.0, {"a": FIRST}, (Host("x", 0.2, 2.0, {"a": 0.4}), Host("gone", 0.9)))
    late = Snapshot(
        4.0, 1.0, {"a": SECOND}, (Host("x", 0.6, 2.0, {"a": 0.8, "b": 0.4}), Host("new", 0.5))
    )
    one = merged([Decision(s.at, "observed", "act", s) for s in (early, late)]).snapshot
    assert one is not None
    assert one.hosts is not None
    assert {h.name: h.utilization for h in one.hosts} == pytest.approx({"x": 0.3, "new": 0.5})
    assert one.hosts[0].loads == pytest.approx({"a": 0.5, "b": 0.1})
