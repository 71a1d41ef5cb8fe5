"""The long-run formulas, in plain Python: compiled code alone may call the compiled ones."""

import pytest

from foretide.sim.stationary import SHARED, SHUFFLE, felt, stationary_level

feels, level = felt.py_func, stationary_level.py_func


def test_bursts_that_waited_at_a_busier_operator_do_not_wait_again():
    assert feels(0.8, 1.0, 0.0, 0.9) == 0.0
    assert feels(0.9, 1.0, 0.0, 0.0) == 1.0


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.8), (0.8, 0.9), (0.9, 0.99)])
def test_two_fixed_servers_in_a_row_wait_as_long_as_the_slower_would_alone(first, second):
    """M/D/1 holds ``rho + rho^2 / (2 (1 - rho))`` (Pollaczek-Khinchine); the order of the two servers does not matter (Friedman 1965)."""
    waiting = level(second, 1, feels(second, 1.0, 0.0, first), 0.0, SHUFFLE) - second
    assert waiting == pytest.approx(second**2 / (2 * (1 - second)) - first**2 / (2 * (1 - first)))


@pytest.mark.parametrize("grouping", [SHARED, SHUFFLE])
def test_fixed_services_dealt_out_in_turn_wait_as_in_one_queue(grouping):
    assert level(0.9, 8, 1.0, 0.0, grouping) == level(0.9, 8, 1.0, 0.0, SHARED)


def test_exponential_services_dealt_out_in_turn_are_queues_of_erlang_arrivals():
    """E2/M/1 at 0.8: sigma = (1.6 / (2.6 - sigma))^2 = 0.740, rho / (1 - sigma) events held by each of two."""
    sigma = 0.5
    for _ in range(200):
        sigma = (1.6 / (2.6 - sigma)) ** 2
    assert level(0.8, 2, 1.0, 1.0, SHUFFLE) == pytest.approx(2 * 0.8 / (1 - sigma), rel=0.02)
