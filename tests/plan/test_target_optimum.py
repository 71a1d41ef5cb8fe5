"""The bound against brute force: every schedule of a small case, served as a fluid in fine
steps.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foretide.errors import InvalidRecord
from foretide.model import WindowPrices
from foretide.plan.fluid import served
from foretide.plan.optimum import needs, optimal_schedule, schedule_cost
from foretide.plan.target_optimum import Promise, target_optimum

FINE = 64


def late_work(work: np.ndarray, schedule: tuple[int, ...], windows: float) -> float:
    """Work that is done later than ``windows`` after it came, by following it in fine steps."""
    came = np.concatenate([[0.0], np.cumsum(np.repeat(np.asarray(work) / FINE, FINE))])
    done = [0.0]
    for i, n in enumerate(np.repeat(schedule, FINE)):
        done.append(min(came[i + 1], done[-1] + n / FINE))
    wait = round(windows * FINE)
    late = 0.0
    for i in range(len(came) - 1 - wait):
        if done[i + 1 + wait] < came[i + 1] - 1e-9:
            late += came[i + 1] - came[i]
    return late


PRICES = st.builds(
    WindowPrices,
    st.integers(1, 10).map(float),
    st.integers(0, 10).map(float),
    st.integers(0, 10).map(float),
    st.integers(0, 3).map(float),
)
WORK = st.lists(st.integers(0, 12).map(lambda q: q / 4), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(work=WORK, prices=PRICES, start=st.integers(1, 3), windows=st.sampled_from([0.5, 1.0, 2.0]))
def test_with_every_event_in_time_it_is_the_cheapest_schedule(
    work: list[float], prices: WindowPrices, start: int, windows: float
) -> None:
    demand = np.array(work)
    found = target_optimum(demand, Promise(windows, 1.0), prices, start)
    most = max(start, int(np.ceil(demand.max())), 1)
    best = min(
        schedule_cost(s, prices, start)
        for s in product(range(1, most + 1), repeat=len(work))
        if late_work(demand, s, windows) <= 1e-9
    )
    assert found.low <= best + 1e-6
    assert found.cost == pytest.approx(best, rel=1e-9, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    work=WORK, prices=PRICES, start=st.integers(1, 3), share=st.sampled_from([0.5, 0.8, 0.9, 0.99])
)
def test_no_schedule_that_keeps_the_share_is_cheaper_than_the_bound(
    work: list[float], prices: WindowPrices, start: int, share: float
) -> None:
    demand = np.array(work)
    found = target_optimum(demand, Promise(1.0, share), prices, start)
    allowed = (1 - share) * demand.sum()
    most = max(start, int(np.ceil(demand.max())), 1)
    best = min(
        schedule_cost(s, prices, start)
        for s in product(range(1, most + 1), repeat=len(work))
        if late_work(demand, s, 1.0) <= allowed + 1e-9
    )
    assert found.low <= best + 1e-6
    assert found.cost >= found.low - 1e-9
    assert found.gap >= -1e-12


def test_it_is_never_dearer_than_covering_the_need_in_every_window() -> None:
    rng = np.random.default_rng(3)
    prices = WindowPrices()
    for _ in range(5):
        work = rng.gamma(2.0, 2.0, 60)
        need = needs(work, 1.0)
        covering = schedule_cost(optimal_schedule(need, prices, 1), prices, 1)
        found = target_optimum(work, Promise(1.0, 0.99), prices, 1)
        assert found.low <= found.cost <= covering * (1 + 1e-9)
        assert found.gap < 0.05


@settings(max_examples=60, deadline=None)
@given(work=WORK, prices=PRICES, most=st.integers(1, 2), windows=st.sampled_from([0.5, 1.0, 2.0]))
@example([2.25, 3.0], WindowPrices(1.0, 0.0, 0.0, 0.0), 2, 0.5)
def test_with_too_few_replicas_no_schedule_is_late_with_less(
    work: list[float], prices: WindowPrices, most: int, windows: float
) -> None:
    demand = np.array(work)
    found = target_optimum(demand, Promise(windows, 0.99), prices, 1, max_replicas=most)
    least = min(
        late_work(demand, s, windows) for s in product(range(1, most + 1), repeat=len(work))
    )
    late = late_work(demand, tuple(found.schedule), windows)
    assert late <= max(0.01 * demand.sum(), least) + demand.max() / FINE + 1e-9


def test_too_few_replicas_all_work_until_the_queue_is_gone() -> None:
    work = np.array([1.0, 1.0, 40.0, *[1.0] * 20])
    found = target_optimum(work, Promise(1.0, 0.9), WindowPrices(), 1, max_replicas=4)
    assert set(found.schedule[3:14]) == {4}
    assert set(found.schedule[-8:]) == {1}
    left = work.sum() - served(work[:, None], found.schedule).sum()
    assert left <= 1.0, "what the last replica does in time"


def test_bounds_and_odd_cases() -> None:
    prices = WindowPrices()
    capped = target_optimum(np.array([1.0, 9.0, 9.0]), Promise(1.0), prices, 1, max_replicas=2)
    assert capped.schedule.max() <= 2
    assert capped.low == capped.cost, "what cannot be kept has no cheaper side"
    assert target_optimum(np.empty(0), Promise(1.0), prices, 1).cost == 0.0
    assert target_optimum(np.zeros(4), Promise(1.0), prices, 1).schedule.tolist() == [1, 1, 1, 1]
    with pytest.raises(InvalidRecord, match="share"):
        Promise(1.0, 1.5)
