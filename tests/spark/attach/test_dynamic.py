"""Advice beside Spark's dynamic allocation."""

import pytest

from foretide.spark.attach.dynamic import PREFIX, advice_beside, is_on

ON = {f"{PREFIX}enabled": "true"}


def test_nothing_is_said_where_it_is_off():
    assert not is_on({})
    assert advice_beside({f"{PREFIX}maxExecutors": "1"}, 5, guide=False) == ""


@pytest.mark.parametrize(
    ("settings", "executors", "sentence"),
    [
        ({"maxExecutors": "3"}, 5, f"{PREFIX}maxExecutors is 3: raise it to 5 at the next start"),
        ({"minExecutors": "6"}, 2, f"{PREFIX}minExecutors is 6: 2 would do, lower it"),
        ({"minExecutors": "1", "maxExecutors": "8"}, 5, "idle for 60s"),
        ({"executorIdleTimeout": "10s"}, 5, "idle for 10s"),
    ],
)
def test_the_setting_in_the_way_is_named(settings, executors, sentence):
    conf = ON | {PREFIX + key: value for key, value in settings.items()}
    assert sentence in advice_beside(conf, executors, guide=True)


def test_who_decides_is_said():
    assert "asked for ahead of dynamic allocation" in advice_beside(ON, 3, guide=True)
    assert "dynamic allocation is on and decides" in advice_beside(ON, 3, guide=False)
