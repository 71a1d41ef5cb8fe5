"""The long-run formulas, in plain Python: compiled code alone may call the compiled ones."""

import pytest

from foretide.sim.fluid.stationary import SHARED, SHUFFLE, effective_scv, stationary_level

feels, level = effective_scv.py_func, stationary_level.py_func  # type: ignore[attr-defined]


def test_bursts_that_waited_at_a_busier_operator_do_not_wait_again():
    assert feels(0.8, 0.0, 1.0, 0.0, 0.9) == 0.0
    assert feels(0.9, 0.0, 1.0, 0.0, 0.0) == 1.0
    assert feels(0.0, 0.0, 1.0, 0.0, 0.9) == 1.0


def test_a_queue_whose_own_service_varies_feels_longer_times():
    assert feels(0.9, 1.0, 1.0, 0.0, 0.9) == pytest.approx(0.5)
    assert (
        feels(0.9, 0.0, 1.0, 0.0, 0.8)
        < feels(0.9, 0.3, 1.0, 0.0, 0.8)
        < feels(0.9, 1.0, 1.0, 0.0, 0.8)
        < 1
    )


@pytest.mark.parametrize(("rho", "size"), [(0.5, 3), (0.8, 10), (0.95, 2)])
def test_groups_that_come_at_once_wait_as_theory_says(rho, size):
    """M[X]/M/1 with groups of n holds ``rho (n + 1) / (2 (1 - rho))``; a fixed server that meets a
    group at a time, its simultaneous alone.
    """
    assert level(rho, 1, 1.0, 1.0, size - 1.0, SHARED) == pytest.approx(
        rho * (size + 1) / (2 * (1 - rho))
    )
    regular = 1.0 + size * (0.0 - 1.0)
    assert level(rho, 1, regular, 0.0, size - 1.0, SHARED) == pytest.approx(
        rho * (1 + (size - 1) / 2)
    )


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.8), (0.8, 0.9), (0.9, 0.99)])
def test_two_fixed_servers_in_a_row_wait_as_long_as_the_slower_would_alone(first, second):
    """M/D/1 holds ``rho + rho^2 / (2 (1 - rho))`` (Pollaczek-Khinchine); the order of the two
    servers does not matter (Friedman 1965).
    """
    waiting = level(second, 1, feels(second, 0.0, 1.0, 0.0, first), 0.0, 0.0, SHUFFLE) - second
    assert waiting == pytest.approx(second**2 / (2 * (1 - second)) - first**2 / (2 * (1 - first)))


@pytest.mark.parametrize("grouping", [SHARED, SHUFFLE])
def test_fixed_services_dealt_out_in_turn_wait_as_in_one_queue(grouping):
    assert level(0.9, 8, 1.0, 0.0, 0.0, grouping) == level(0.9, 8, 1.0, 0.0, 0.0, SHARED)


def test_exponential_services_dealt_out_in_turn_are_queues_of_erlang_arrivals():
    """E2/M/1 at 0.8: sigma = (1.6 / (2.6 - sigma))^2 = 0.740, rho / (1 - sigma) events held by each
    of two.
    """
    sigma = 0.5
    for _ in range(200):
        sigma = (1.6 / (2.6 - sigma)) ** 2
    assert level(0.8, 2, 1.0, 1.0, 0.0, SHUFFLE) == pytest.approx(2 * 0.8 / (1 - sigma), rel=0.02)
