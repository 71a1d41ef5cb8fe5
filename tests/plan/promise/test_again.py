import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foretide.plan.promise.again import LAST, wanted_again


def again(*wanted: float, recent: int = 8, restart: float = 7.5) -> float:
    return float(wanted_again(np.array(wanted)[:, None], recent, restart)[0])


def test_a_replica_that_flips_is_kept_and_one_that_falls_is_not() -> None:
    assert again(8, 9, 8, 9, 9, 8, 9, 8) == 9
    assert again(30, 25, 21, 18, 15, 12, 10, 8) == 0


def test_noise_on_a_fall_holds_nothing_up() -> None:
    assert again(30, 25, 26, 18, 19, 12, 13, 8) == 0


def test_a_replica_that_is_wanted_seldom_goes() -> None:
    """Two restarts cost 15 windows, and it was idle in 18."""
    quiet = [8] * 9
    assert again(*quiet, 9, *quiet, 9, 8, recent=30) == 0
    assert again(*quiet[:4], 9, *quiet[:4], 9, 8, recent=30) == 9


def test_what_was_not_wanted_lately_goes() -> None:
    flips = [8, 9] * 5
    assert again(*flips, 8, 8, 8, recent=4) == 9
    assert again(*flips, 8, 8, 8, recent=3) == 0


def test_free_replicas_and_free_restarts() -> None:
    assert again(8, 9, 8, 9, 8, restart=np.inf) == 9
    assert again(8, 9, 8, 9, 8, restart=0.0) == 0


def test_every_operator_is_looked_at_alone_and_not_for_ever() -> None:
    flips, steady = np.tile([8.0, 9.0], LAST), np.full(2 * LAST, 5.0)
    assert wanted_again(np.array([flips, steady]).T, 8, 7.5).tolist() == [9.0, 0.0]
    long_ago = np.concatenate([flips[:20], np.full(LAST, 8.0)])
    assert wanted_again(long_ago[:, None], 10_000, 7.5)[0] == 0.0


@given(st.lists(st.integers(1, 4), min_size=2, max_size=12), st.floats(0.5, 10.0))
def test_keeping_was_cheaper_than_restarting(wanted: list[int], restart: float) -> None:
    """Replica by replica, both policies paid window by window."""
    kept = int(again(*wanted, recent=len(wanted), restart=restart))
    if not kept:
        return
    idle = sum(w < kept for w in wanted)
    restarts = sum(a < kept <= b for a, b in itertools.pairwise(wanted))
    assert idle < restarts * restart
    assert kept <= max(wanted)
