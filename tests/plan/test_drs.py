import math
from dataclasses import replace

import pytest

from foretide.errors import Infeasible, InvalidConfig, NotReady
from foretide.history import History
from foretide.model import Forecast, Latency, Sample, Snapshot
from foretide.plan.batch_network import BatchNetwork, BatchStation
from foretide.plan.drs import Drs, DrsSettings
from foretide.plan.processors import QueueNetwork, Station, assign_processors, min_processors
from foretide.topology import Operator, Topology

CHAIN = Topology((Operator("a"), Operator("b", ("a",))))
SERVICE = {"a": 0.1, "b": 0.2}


def latency(seconds):
    ms = seconds * 1e3
    return Latency(100, ms, ms, ms, ms)


def snapshot(at, replicas, rate=8.0, measured_s=None, topology=CHAIN, share=None, **extra):
    """One window of 10 s in which every operator kept up."""
    share = share or {("a", "b"): 1.0}
    flow = {topology.names[0]: rate}
    for (p, c), s in share.items():
        flow[c] = flow.get(c, 0.0) + flow[p] * s
    samples = {
        n: Sample(
            flow[n] * 10,
            flow[n] * 10,
            0,
            replicas[n],
            {c: flow[n] * 10 * s for (p, c), s in share.items() if p == n},
            busy_s=flow[n] * 10 * SERVICE[n],
            offered=rate * 10 if n in topology.sources else None,
            **extra,
        )
        for n in topology.names
    }
    return Snapshot(at, 10.0, samples, latency=None if measured_s is None else latency(measured_s))


def history(*snapshots, topology=CHAIN):
    h = History(topology)
    for s in snapshots:
        h.append(s)
    return h


MODEL = QueueNetwork((Station(8.0, 0.1), Station(8.0, 0.2)), load=8.0)


def test_too_slow_takes_the_fewest_that_meet_the_target():
    h = history(snapshot(10.0, {"a": 1, "b": 2}, measured_s=1.6))
    plan = Drs(DrsSettings(t_max_s=1.0, t_min_s=0.2, model="mmk")).plan(CHAIN, h, {})
    factor = max(1.0, 1.6 / MODEL.sojourn_s((1, 2)))
    assert tuple(plan.replicas.values()) == min_processors(MODEL, 1.0 / factor)
    assert plan.total > 3
    assert "too slow" in plan.reasons[""]
    assert all(any(c.isdigit() for c in r) for r in plan.reasons.values())


def test_an_unstable_allocation_is_rescued_whatever_was_measured():
    h = history(snapshot(10.0, {"a": 1, "b": 1}))
    plan = Drs(DrsSettings(t_max_s=1.0, model="mmk")).plan(CHAIN, h, {})
    assert tuple(plan.replicas.values()) == min_processors(MODEL, 1.0)


def test_too_fast_gives_replicas_back_and_never_takes_more():
    h = history(snapshot(10.0, {"a": 9, "b": 9}, measured_s=0.31))
    plan = Drs(DrsSettings(t_max_s=1.0, t_min_s=0.45, model="mmk")).plan(CHAIN, h, {})
    assert tuple(plan.replicas.values()) == min_processors(MODEL, 1.0)
    assert "fewer suffice" in plan.reasons[""]


def test_within_the_target_the_total_stays_and_the_spread_is_best():
    h = history(snapshot(10.0, {"a": 5, "b": 2}, measured_s=0.6))
    plan = Drs(DrsSettings(t_max_s=1.0, t_min_s=0.45, model="mmk")).plan(CHAIN, h, {})
    assert tuple(plan.replicas.values()) == assign_processors(MODEL, 7) == (3, 4)


def test_nothing_changes_soon_after_a_change():
    h = history(
        snapshot(10.0, {"a": 1, "b": 2}),
        snapshot(20.0, {"a": 1, "b": 3}),
        snapshot(70.0, {"a": 1, "b": 3}, measured_s=9.0),
    )
    plan = Drs(DrsSettings(reallocate_after_s=60.0)).plan(CHAIN, h, {})
    assert plan.replicas == {"a": 1, "b": 3}
    assert "held: 50 s" in plan.reasons[""]


def test_what_was_asked_for_and_is_not_there_yet_stays_asked_for():
    h = history(snapshot(10.0, {"a": 1, "b": 2}), snapshot(20.0, {"a": 1, "b": 3}))
    h.ask({"a": 4, "b": 3})
    assert Drs().plan(CHAIN, h, {}).replicas == {"a": 4, "b": 3}


def test_latency_of_the_old_allocation_is_not_held_against_the_new():
    before = [snapshot(10.0 * i, {"a": 1, "b": 2}, measured_s=9.0) for i in range(1, 7)]
    after = [snapshot(10.0 * i, {"a": 2, "b": 5}, measured_s=0.5) for i in range(7, 14)]
    assert Drs().measured_s(history(*before, *after)) == pytest.approx(0.5)


def test_a_drained_backlog_does_not_ask_for_the_impossible():
    h = history(snapshot(10.0, {"a": 2, "b": 3}, measured_s=60.0))
    plan = Drs(DrsSettings(t_max_s=1.0, model="mmk")).plan(CHAIN, h, {})
    assert plan.total == 5


def test_a_fixed_total_is_always_spread_best():
    h = history(snapshot(10.0, {"a": 5, "b": 2}, measured_s=9.9))
    assert tuple(Drs(DrsSettings(total=7, model="mmk")).plan(CHAIN, h, {}).replicas.values()) == (
        3,
        4,
    )
    with pytest.raises(Infeasible, match="at least 3"):
        Drs(DrsSettings(total=2)).plan(CHAIN, h, {})


def test_a_target_below_the_service_time_says_what_is_feasible():
    with pytest.raises(Infeasible, match=r"300\.0 ms"):
        Drs(DrsSettings(t_max_s=0.25, t_min_s=0.1)).plan(
            CHAIN, history(snapshot(10.0, {"a": 1, "b": 2}, measured_s=1.0)), {}
        )


def test_measured_variation_changes_the_model():
    # Bulk arrivals at b: the general model moves a replica there, the exponential one does not
    # know.
    h = History(CHAIN)
    s = snapshot(10.0, {"a": 3, "b": 4})
    b = s.samples["b"]
    samples = dict(s.samples)
    samples["b"] = Sample(
        b.arrived, b.processed, 0, 4, {}, busy_s=b.busy_s, scv_arrival=9.0, scv_service=1.0
    )
    samples["a"] = Sample(
        80, 80, 0, 3, {"b": 80.0}, busy_s=8.0, offered=80.0, scv_arrival=0.1, scv_service=0.1
    )
    h.append(Snapshot(10.0, 10.0, samples))
    assert tuple(Drs(DrsSettings(total=5, model="mmk")).plan(CHAIN, h, {}).replicas.values()) == (
        2,
        3,
    )
    assert tuple(Drs(DrsSettings(total=5, model="gigk")).plan(CHAIN, h, {}).replicas.values()) == (
        1,
        4,
    )


def test_smoothing_by_window_and_by_alpha():
    h = history(
        *(
            snapshot(10.0 * i, {"a": 2, "b": 4}, rate=r)
            for i, r in enumerate((2.0, 4.0, 8.0), start=1)
        )
    )
    assert Drs(DrsSettings(smoothing=2)).network(CHAIN, h, {}).load == pytest.approx(6.0)
    d = 2.0
    for r in (4.0, 8.0):
        d = 0.3 * d + 0.7 * r
    assert Drs(DrsSettings(alpha=0.3)).network(CHAIN, h, {}).load == pytest.approx(d)


def test_foresight_plans_for_the_highest_forecast():
    h = history(snapshot(10.0, {"a": 2, "b": 4}))
    ahead = {"a": Forecast((10.0, 40.0, 20.0))}
    assert Drs(DrsSettings(foresight=True)).network(CHAIN, h, ahead).load == 40.0
    assert Drs().network(CHAIN, h, ahead).load == 8.0


def test_a_loop_is_modelled_with_every_round():
    loop = Topology((Operator("a", ("b",), source=True), Operator("b", ("a",))))
    h = History(loop)
    a = Sample(100, 100, 0, 2, {"b": 100.0}, busy_s=10, offered=80)
    b = Sample(100, 100, 0, 3, {"a": 20.0}, busy_s=20)
    h.append(Snapshot(10.0, 10.0, {"a": a, "b": b}))
    network = Drs(DrsSettings(model="mmk")).network(loop, h, {})
    assert [s.rate for s in network.stations] == pytest.approx([10.0, 10.0])
    assert network.service_s == pytest.approx(1.25 * 0.3)


def test_sojourns_stand_in_where_no_latency_is_measured():
    h = history(snapshot(10.0, {"a": 2, "b": 3}, sojourn_s=0.4))
    assert Drs().measured_s(h) == pytest.approx(0.8)


def test_the_papers_own_measure_counts_all_that_came_of_an_event():
    h = history(snapshot(10.0, {"a": 2, "b": 3}, measured_s=0.3, sojourn_s=0.4))
    assert Drs().measured_s(h) == pytest.approx(0.3)
    assert Drs(DrsSettings(measure="sojourn")).measured_s(h) == pytest.approx(0.8)


def test_nothing_known_is_not_ready():
    with pytest.raises(NotReady):
        Drs().plan(CHAIN, History(CHAIN), {})
    with pytest.raises(NotReady):
        Drs().plan(
            CHAIN,
            history(Snapshot(1.0, 1.0, {n: Sample(0, 0, 0, 1, busy_s=0) for n in CHAIN.names})),
            {},
        )


@pytest.mark.parametrize(
    "wrong", [{"t_max_s": 0.1}, {"alpha": 1.0}, {"model": "mg1"}, {"measure": "p99"}]
)
def test_wrong_constants_are_named(wrong):
    with pytest.raises(InvalidConfig):
        Drs(DrsSettings(**wrong))


@pytest.mark.parametrize("load", [5.0, 6.0])
def test_published_special_case_where_only_the_general_model_is_right(load):
    # Figure 10: K = 7, bulk arrivals at the matcher. M/M/k prefers 3:3:1, GI/G/k picks 2:4:1.
    service = (0.25, 0.3, 0.02)
    plain = QueueNetwork(tuple(Station(load, s) for s in service), load)
    bulk = QueueNetwork(
        tuple(Station(load, s, v) for s, v in zip(service, (0.6, 2.5, 1.0), strict=True)), load
    )
    assert assign_processors(plain, 7) == (3, 3, 1)
    assert assign_processors(bulk, 7) == (2, 4, 1)


TRIGGER_S = 1.0


def in_batches(at, replicas, measured_s, rate=30.0, fixed_s=0.5):
    """A window of 10 s in micro-batches: half a second of fixed cost, waits as on Spark."""
    samples = {}
    for n, wait_s in (("a", 0.5), ("b", 0.1)):
        station = BatchStation(rate, SERVICE[n], TRIGGER_S, wait_s, fixed_s)
        k = replicas[n]
        kept = math.isfinite(station.sojourn_s(k))
        samples[n] = Sample(
            rate * 10,
            rate * 10,
            0,
            k,
            {"b": rate * 10} if n == "a" else {},
            busy_s=rate * 10 * SERVICE[n],
            offered=rate * 10 if n == "a" else None,
            sojourn_s=station.sojourn_s(k) if kept else 9.0,
            batches=10 / station.interval_s(k) if kept else 2.0,
            batch_s=station.batch_s(k) if kept else 5.0,
            trigger_s=TRIGGER_S if n == "a" else None,
        )
    return Snapshot(at, 10.0, samples, latency=latency(measured_s))


def batch_drs(**settings):
    return Drs(DrsSettings(**{"t_max_s": 4.0, "t_min_s": 1.8, "smoothing": 1, **settings}))


def test_in_micro_batches_the_model_is_what_was_measured():
    replicas = {"a": 6, "b": 9}
    h = history(in_batches(10.0, replicas, 3.0))
    model = batch_drs().model(CHAIN, h, {})
    assert isinstance(model, BatchNetwork)
    sojourns = [s.sojourn_s for s in h.latest.samples.values()]
    assert model.sojourn_s((6, 9)) == pytest.approx(sum(sojourns), rel=0.05)


def test_in_micro_batches_too_slow_gets_more_where_it_helps_most():
    h = history(in_batches(10.0, {"a": 4, "b": 9}, 5.2))
    plan = batch_drs().plan(CHAIN, h, {})
    assert plan.total > 13
    assert plan.replicas["b"] - 9 >= plan.replicas["a"] - 4 >= 0
    assert "too slow" in plan.reasons[""]


def test_in_micro_batches_too_slow_against_the_model_gets_one_more():
    h = history(in_batches(10.0, {"a": 9, "b": 15}, 60.0))
    plan = batch_drs().plan(CHAIN, h, {})
    assert plan.total == 25
    assert "too slow" in plan.reasons[""]


def test_in_micro_batches_too_fast_gives_replicas_back():
    h = history(in_batches(10.0, {"a": 20, "b": 25}, 1.5))
    plan = batch_drs().plan(CHAIN, h, {})
    assert plan.total < 45
    model = batch_drs().model(CHAIN, h, {})
    assert model.sojourn_s(tuple(plan.replicas.values())) <= 4.0
    assert "fewer suffice" in plan.reasons[""]


def test_in_micro_batches_a_small_gain_is_not_worth_a_new_spread():
    h = history(in_batches(10.0, {"a": 6, "b": 10}, 3.9))
    plan = batch_drs().plan(CHAIN, h, {})
    assert plan.replicas == {"a": 6, "b": 10}
    lopsided = history(in_batches(10.0, {"a": 20, "b": 10}, 3.9))
    plan = batch_drs().plan(CHAIN, lopsided, {})
    assert plan.total == 30
    assert plan.replicas["b"] > 10


def test_in_micro_batches_an_unreachable_target_is_a_sentence_and_the_best_there_is():
    h = history(in_batches(10.0, {"a": 4, "b": 7}, 5.2))
    plan = batch_drs(t_max_s=1.0, t_min_s=0.4).plan(CHAIN, h, {})
    assert "No number of replicas can meet 1 s" in plan.reasons[""]
    assert plan.total > 11


def test_k_max_bounds_the_total_and_the_reason_says_so():
    h = history(in_batches(10.0, {"a": 4, "b": 7}, 5.2))
    free = batch_drs().plan(CHAIN, h, {}).total
    plan = batch_drs(k_max=free - 1).plan(CHAIN, h, {})
    assert plan.total == free - 1
    assert f"{free} replicas are wanted and K_max is {free - 1}" in plan.reasons[""]
    slow = history(snapshot(10.0, {"a": 1, "b": 2}, measured_s=1.6))
    queues = DrsSettings(t_max_s=1.0, t_min_s=0.2, model="mmk", k_max=4)
    assert Drs(queues).plan(CHAIN, slow, {}).total == 4
    with pytest.raises(InvalidConfig, match="k_max 0"):
        DrsSettings(k_max=0)


def test_in_micro_batches_what_cannot_keep_up_is_rescued():
    h = history(in_batches(10.0, {"a": 2, "b": 3}, 30.0))
    plan = batch_drs().plan(CHAIN, h, {})
    assert plan.replicas["a"] > 3
    assert plan.replicas["b"] > 6
    assert "grows without end" in plan.reasons[""]


def test_completion_is_measured_where_it_is_asked_for():
    seen = replace(snapshot(10.0, {"a": 3, "b": 4}, measured_s=0.6), completion=latency(0.9))
    h = history(seen)
    assert Drs(DrsSettings(measure="completion")).measured_s(h) == pytest.approx(0.9)
    assert Drs().measured_s(h) == pytest.approx(0.6)
    with pytest.raises(InvalidConfig, match="cannot measure 'time'"):
        DrsSettings(measure="time")


def test_in_micro_batches_nothing_shrinks_before_a_batch_has_ended():
    h = history(replace(in_batches(10.0, {"a": 20, "b": 25}, 1.5), latency=None))
    for sample in h.latest.samples.values():
        object.__setattr__(sample, "sojourn_s", None)
    plan = batch_drs().plan(CHAIN, h, {})
    assert plan.replicas == {"a": 20, "b": 25}
    assert "no batch has ended since the last change" in plan.reasons[""]
