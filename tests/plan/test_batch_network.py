"""DRS's network in micro-batches: a batch counted event by event is the reference."""

import itertools
import math
import random

import pytest

from foretide.errors import Infeasible, InvalidRecord
from foretide.plan.batch_network import BatchNetwork, BatchStation


def counted(station: BatchStation, k: int, batches: int = 4000, seed: int = 1) -> float:
    """Mean sojourn of events that come evenly, by dealing out every single one of them."""
    rng = random.Random(seed)
    shape = 1 / station.scv if station.scv else math.inf
    at, arrived, total, done = 0.0, 0.0, 0.0, 0
    for _ in range(batches):
        events = []
        while arrived <= at:
            events.append(arrived)
            arrived += 1 / station.rate
        busy = [0.0] * k
        for i in range(len(events)):
            s = station.service_time_s
            busy[i % k] += s if math.isinf(shape) else rng.gammavariate(shape, s / shape)
        batch_s = station.fixed_s + station.per_task_s * k + max(busy)
        total += sum(at + batch_s - e for e in events)
        done += len(events)
        at = max(at + station.pace_s, at + batch_s)
    return total / done


@pytest.mark.parametrize("rate", [13.0, 47.0, 110.0])
@pytest.mark.parametrize("scv", [0.0, 1.0])
@pytest.mark.parametrize("k", [3, 6, 9])
def test_a_source_s_sojourn_is_that_of_events_counted_one_by_one(
    rate: float, scv: float, k: int
) -> None:
    station = BatchStation(rate, 0.024, 1.0, 0.5, fixed_s=0.3, per_task_s=0.02, scv=scv)
    assert station.sojourn_s(k) == pytest.approx(counted(station, k), rel=0.1)


def test_batches_that_overrun_follow_each_other() -> None:
    station = BatchStation(110.0, 0.024, 1.0, 0.5, fixed_s=0.6)
    assert station.interval_s(3) == pytest.approx(station.batch_s(3), rel=1e-6)
    assert station.interval_s(3) > 1.0
    assert station.interval_s(2) == station.sojourn_s(2) == math.inf
    assert station.sojourn_s(3) == pytest.approx(counted(station, 3), rel=0.1)


def network() -> BatchNetwork:
    first = BatchStation(30.0, 0.1, 1.0, 0.5, 0.4, 0.02)
    second = BatchStation(30.0, 0.05, 1.0, 0.1, 0.4, 0.02, scv=1.0)
    return BatchNetwork((first, second), load=30.0)


@pytest.mark.parametrize("total", [8, 10, 13])
def test_assigning_is_as_good_as_trying_every_allocation(total: int) -> None:
    net = network()
    tried = [
        (net.sojourn_s((a, total - a)), (a, total - a))
        for a in range(1, total)
        if math.isfinite(net.sojourn_s((a, total - a)))
    ]
    assert net.sojourn_s(net.assign(total)) <= 1.02 * min(tried)[0]
    assert sum(net.assign(total)) == total


@pytest.mark.parametrize("target_s", [3.6, 3.0, 2.6])
def test_the_fewest_that_meet_a_target_are_one_from_the_least_of_all(target_s: float) -> None:
    net = network()
    fewest = net.fewest(target_s)
    meets = [
        sum(k) for k in itertools.product(range(1, 30), repeat=2) if net.sojourn_s(k) <= target_s
    ]
    assert net.sojourn_s(fewest) <= target_s
    assert sum(fewest) <= min(meets) + 1


def test_a_target_that_no_replica_can_meet_names_what_stands_in_the_way() -> None:
    with pytest.raises(
        Infeasible, match=r"No number of replicas can meet 1 s: .* 0\.6 s are waiting for batches"
    ):
        network().fewest(1.0)
    best = network().nearly_best()
    assert network().sojourn_s(best) <= 1.06 * network().sojourn_s((15, 15))
    with pytest.raises(Infeasible, match="4 replicas cannot keep up"):
        network().assign(4)


def test_replicas_beyond_the_most_are_not_given() -> None:
    bound = BatchStation(30.0, 0.1, 1.0, 0.5, 0.4, most=5)
    assert BatchNetwork((bound,), load=30.0).assign(9) == (5,)
    with pytest.raises(InvalidRecord, match="must be finite and >= 0"):
        BatchStation(-1.0, 0.1, 1.0, 0.5, 0.4)
