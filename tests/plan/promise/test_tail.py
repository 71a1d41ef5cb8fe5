import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foretide.plan import queueing
from foretide.plan.promise.tail import (
    EXACT,
    MOST_BUSY,
    erlang_c,
    for_batches,
    for_tail,
    utilization,
    wait_s,
)


@given(st.lists(st.tuples(st.integers(1, 80), st.floats(0, 100)), min_size=1, max_size=8))
def test_erlang_c_of_arrays_is_that_of_numbers(pairs: list[tuple[int, float]]) -> None:
    k, a = (np.array(c, dtype=float) for c in zip(*pairs, strict=True))
    one_by_one = [queueing.erlang_c(int(n), float(x)) for n, x in pairs]
    np.testing.assert_allclose(erlang_c(k, a), one_by_one, rtol=1e-9, atol=1e-12)


def test_the_wait_is_that_of_an_mm1_queue() -> None:
    """P(W > t) = rho * exp(-(mu - lambda) * t), so the 99th percentile is known."""
    rho, service = 0.8, 0.1
    exact = np.log(rho / 0.01) * service / (1 - rho)
    found = wait_s(np.array([1.0]), np.array([rho]), np.array([service]), 0.99)
    np.testing.assert_allclose(found, [exact])


@given(
    work=st.lists(st.floats(0, 60), min_size=1, max_size=4),
    service=st.floats(0.001, 2.0),
    spare=st.floats(0.05, 10.0),
)
def test_it_is_the_least_that_keeps_the_sum_of_waits(
    work: list[float], service: float, spare: float
) -> None:
    a = np.array(work)
    scale, visits = np.full(len(a), service), np.ones(len(a))
    k = for_tail(a, scale, visits, spare, 0.99)
    assert (k > a).all()
    assert wait_s(k, a, scale, 0.99).sum() <= spare + 1e-9
    floor = np.floor(a) + 1
    if (k > floor).any():
        assert wait_s(floor, a, scale, 0.99).sum() > spare


def test_a_tight_target_takes_more_replicas_where_they_help_most() -> None:
    a, scale = np.array([9.5, 9.5]), np.array([0.01, 1.0])
    k = for_tail(a, scale, np.ones(2), 1.0, 0.99)
    assert k[0] == 10
    assert k[1] > 12


def test_thousands_of_replicas_are_on_the_safe_side() -> None:
    a = np.array([10.0 * EXACT])
    assert for_tail(a, np.array([0.01]), np.ones(1), 5.0, 0.99)[0] == a[0] + 1


def test_batches_divide_what_the_target_leaves() -> None:
    interval, fixed = np.array([1.0, 1.0]), np.array([0.2, 0.3])
    k = for_batches(np.array([4.0, 1.0]), interval, fixed, 5.0)
    assert (interval + fixed + interval * np.array([4.0, 1.0]) / k).sum() <= 5.0 + 1e-9
    none = for_batches(np.array([4.0]), np.array([3.0]), np.array([3.0]), 5.0)
    assert none[0] == 4.0 / MOST_BUSY, "no number of replicas helps: what keeps up"


def test_batches_of_fixed_cost_leave_room_for_their_own_length() -> None:
    """100 events/s of 31 ms: four replicas are busy for 78 % of the time. A fixed cost of a third
    of a second leaves room for that, one of 1.2 s makes batches of more than five seconds.
    """
    work, second = np.array([3.1]), np.array([1.0])
    quick = np.ceil(for_batches(work, second, 0.33 * second, 8.0))
    slow = np.ceil(for_batches(work, second, 1.2 * second, 8.0))
    assert (quick[0], slow[0]) == (4, 5)


@given(
    st.lists(st.tuples(st.floats(0, 40), st.floats(0.1, 5), st.floats(0, 3)), min_size=1),
    st.floats(1, 60),
)
def test_a_utilization_that_is_not_the_highest_keeps_the_target(
    operators: list[tuple[float, float, float]], target_s: float
) -> None:
    a, interval_s, fixed_s = (np.array(column) for column in zip(*operators, strict=True))
    busy = utilization(a, interval_s, fixed_s, target_s)
    assert 0 < busy <= MOST_BUSY
    share = a / np.maximum(1.0, np.ceil(a / busy * (1 - 1e-9)))
    batch_s = np.maximum(interval_s, fixed_s / (1 - share))
    if busy < MOST_BUSY:
        assert (batch_s * (1 + share) + fixed_s).sum() <= target_s
