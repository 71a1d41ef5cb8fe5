import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foretide.plan.promise.due import carried, due_work, stretch, stretched


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
    assert stretch(steady, 1.0, 0.98)[0] > 0.9
    assert stretch(spiky, 1.0, 0.98)[0] < 0.6
    assert stretch(np.array([1.0, np.nan]), 1.0, 0.98) == (1.0, np.inf)


def test_a_short_past_is_not_taken_for_a_load_that_can_wait() -> None:
    assert stretch(np.full(5, 10.0), 1.0, 0.98)[0] > 0.9


def test_the_capacity_that_was_enough_has_a_margin_that_fades_with_what_was_seen() -> None:
    enough = [stretch(np.full(n, 10.0), 1.0, 0.98)[1] for n in (5, 50, 300)]
    assert enough[0] > 20.0
    assert enough == sorted(enough, reverse=True)
    assert 9.0 < enough[2] < 10.0


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20), st.integers(0, 3))
def test_a_carried_burst_is_done_in_time_with_the_lowest_peak(
    rates: list[float], delay: int
) -> None:
    came = np.array(rates)
    found = carried(came[:, None], delay)[:, 0]
    owed, done = np.cumsum(came), np.cumsum(found)
    assert (done <= owed + 1e-6).all()
    assert (done[delay:] >= owed[: len(owed) - delay] - 1e-6).all()
    lower = 0.99 * found.max() if found.max() > 1e-6 else 0.0
    waiting, late = 0.0, False
    for i in range(len(came) + delay):
        waiting = max(0.0, waiting + (came[i] if i < len(came) else 0.0) - lower)
        late |= waiting > came[max(0, i - delay + 1) : i + 1].sum() + 1e-9
    assert late or found.max() <= 1e-6
