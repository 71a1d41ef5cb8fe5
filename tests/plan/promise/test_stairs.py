import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretide.plan.promise.rehearsal import Setting, replayed
from foretide.plan.promise.stairs import BUSIEST, NEAR, Stairs, whole

CHAIN = np.array([0.5, 1.0, 0.75])
SHARES = st.lists(st.floats(0.05, 1.0), min_size=0, max_size=4)


def replicas(capacity: float, shares: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(1.0, np.ceil(capacity * shares - 1e-5)))


def cost_per_work(asked: float, shares: np.ndarray) -> float:
    """Replicas for each busy one of the busiest operator that they let through."""
    found = replicas(asked, shares)
    return float(found.sum() / (found / shares).min())


def test_without_room_to_choose_it_rounds_up() -> None:
    alone = Stairs.of(np.ones(1), top=30.0, near=0.0)
    assert [alone.at(w) for w in (0.0, 0.3, 1.0, 7.2, 8.0, 29.5)] == [1, 1, 1, 8, 8, 30]
    assert np.allclose(alone.cost, alone.capacity)


def test_one_operator_alone_is_rounded_to_the_nearest_of_equal_cost_per_work() -> None:
    """All whole numbers of one operator cost as much as they are: the lowest one near is taken."""
    assert whole(10.3, np.ones(1)) == pytest.approx(10.0)
    assert whole(2.5, np.ones(1)) == pytest.approx(2.5 * (1 + NEAR))


@given(SHARES, st.floats(0.5, 60.0))
def test_it_is_near_what_is_asked_for_and_no_capacity_there_is_cheaper(
    others: list[float], wanted: float
) -> None:
    shares = np.array([1.0, *others])
    found = whole(wanted, shares)
    assert (1 - NEAR) * wanted - 0.01 <= found <= (1 + NEAR) * wanted + 1e-9
    tried = np.linspace((1 - NEAR) * wanted + 0.01, (1 + NEAR) * wanted - 0.01, 301)
    inside = [w for w in tried if (replicas(w, shares) / shares).min() <= (1 + NEAR) * wanted]
    best = min((cost_per_work(w, shares) for w in inside), default=np.inf)
    assert cost_per_work(found, shares) <= best * 1.001 or not inside


@given(SHARES, st.floats(5.0, 60.0))
def test_steps_rise_and_keep_what_they_are_asked_for(others: list[float], top: float) -> None:
    stairs = Stairs.of(np.array([1.0, *others]), top)
    assert (np.diff(stairs.place) >= 0).all()
    assert (np.diff(stairs.capacity) >= 0).all()
    assert (np.diff(stairs.cost) > 0).all()


def test_many_operators_are_judged_by_the_busiest() -> None:
    many = np.linspace(0.001, 1.0, 10_000)
    assert whole(10.1, many) == whole(10.1, np.sort(many)[-BUSIEST:])
    assert whole(3.0, np.zeros(5)) == pytest.approx(3.0)


def test_a_replayed_rule_pays_for_all_operators() -> None:
    """Ten busy replicas of the busiest are 5, 10 and 8: 23 replicas for 22.5 busy ones."""
    flat, setting = np.full(200, 10.0), Setting(4, 0.8, 0.01, 3.75, shares=CHAIN)
    cost, late = replayed(flat, flat, 4, 1.0, setting)
    assert late == 0.0
    assert cost == pytest.approx(200 * 10.0 * 23 / 22.5)


def test_a_replayed_rule_that_asks_again_for_what_it_has_gets_no_more() -> None:
    """A queue that lasts keeps the request as it is, step by step."""
    flat, setting = np.full(60, 10.0), Setting(3, 0.8, 0.01, 3.75, shares=CHAIN)
    burst = flat.copy()
    burst[20:23] = 30.0
    cost, _ = replayed(burst, flat, 3, 1.0, setting)
    assert cost < 2.0 * 60 * 10.0
