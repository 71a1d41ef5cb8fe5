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


def test_a_promise_about_events_is_kept_when_most_come_in_few_windows() -> None:
    """One window in ten has a hundred times as many events, and only those can be late. If windows
    counted alike, most of those events would be late.
    """
    level, late, came = Level(share=0.9, start=0.0, most=4.0), 0.0, 0.0
    for i in range(6000):
        count = 1000.0 if i % 10 == 0 else 10.0
        share_late = max(0.0, 0.8 - 0.25 * level.value) if count > 100 else 0.0
        if i >= 1000:
            late, came = late + share_late * count, came + count
        level.see(count, (1.0 - share_late) * count)
    assert late / came == pytest.approx(0.1, abs=0.01)


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
    level.see(100.0, 100.0)
    again.restore(level.state())
    for one in (level, again):
        one.see(1000.0, 900.0)
    assert again.value == level.value
    again.restore({"level": 99.0})
    assert again.value == 1.0
    with pytest.raises(ValueError, match="cannot be restored"):
        again.restore({"level": math.nan})
    with pytest.raises(ValueError, match="cannot be restored"):
        again.restore({"level": 0.5, "usual": -1.0})
