import math

import numpy as np
import pytest

from foretide.plan.promise.level import Level


def test_it_rests_where_the_promise_is_kept() -> None:
    """Late events fall as the level rises: the level settles where their share is the promise's."""
    level, late = Level(share=0.9, start=1.0, rate=0.2), []
    for _ in range(2000):
        share_late = max(0.0, 0.5 - level.value)
        late.append(share_late)
        level.see(100.0, 100.0 * (1 - share_late))
    assert np.mean(late[-500:]) == pytest.approx(0.1, abs=0.01)
    assert np.ptp(late[-500:]) < 0.05, "it converges and does not swing"


def test_a_late_window_raises_it_at_once_and_windows_in_time_lower_it_slowly() -> None:
    level = Level(share=0.99, start=0.0)
    level.see(100.0, 60.0)
    assert level.value == pytest.approx(0.195)
    level.see(100.0, 100.0)
    assert level.value == pytest.approx(0.19)


@pytest.mark.parametrize(
    ("count", "within"), [(None, None), (0.0, 0.0), (10.0, None), (10.0, math.nan), (math.nan, 1.0)]
)
def test_what_was_not_measured_changes_nothing(count: float | None, within: float | None) -> None:
    level = Level(start=0.5)
    level.see(count, within)
    assert level.value == 0.5


def test_it_survives_a_restart_and_refuses_nonsense() -> None:
    level, again = Level(start=0.3), Level()
    again.restore(level.state())
    assert again.value == 0.3
    again.restore({"level": 99.0})
    assert again.value == 1.0
    with pytest.raises(ValueError, match="cannot be restored"):
        again.restore({"level": math.nan})
