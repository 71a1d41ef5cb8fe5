import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foretide.plan.promise.due import due_work, stretch, stretched


def test_what_waits_and_what_comes_before_the_target_ends_is_due() -> None:
    ten = np.array([10.0])
    assert due_work(np.array([7.0]), ten, ten, delay=1.0)[0] == 7.0
    assert due_work(np.array([7.0]), ten, ten, delay=0.5)[0] == 12.0


def test_the_youngest_are_not_due_where_the_target_is_long() -> None:
    ten = np.array([10.0])
    assert due_work(np.array([10.0]), ten, ten, delay=2.0)[0] == 0.0
    assert due_work(np.array([40.0]), ten, ten, delay=2.0)[0] == 30.0


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.floats(0.1, 3.0))
def test_the_stretched_capacity_keeps_single_windows_in_time(
    rates: list[float], delay: float
) -> None:
    capacity = stretched(np.array(rates), delay)
    assert (capacity >= np.array(rates) / (1 + delay) - 1e-9).all()
    assert capacity.max() <= max(rates) + 1e-9


def test_a_steady_load_cannot_be_stretched_much_and_a_spike_can() -> None:
    steady, spiky = np.full(60, 10.0), np.where(np.arange(60) % 20 == 0, 100.0, 5.0)
    assert stretch(steady, 1.0, 0.98) > 0.9
    assert stretch(spiky, 1.0, 0.98) < 0.6
    assert stretch(np.array([1.0, np.nan]), 1.0, 0.98) == 1.0
