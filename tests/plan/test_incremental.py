"""One replica at a time."""

from __future__ import annotations

import pytest

from foretide.errors import InvalidConfig
from foretide.history import History
from foretide.model import Sample, Snapshot
from foretide.plan.incremental import Incremental
from foretide.topology import Operator, Topology

T = Topology((Operator("a", min_replicas=2),))


@pytest.mark.parametrize(
    ("replicas", "busy_s", "wanted"),
    [(4, 40.0, 5), (4, 32.0, 4), (4, 12.0, 4), (4, 8.0, 3), (2, 0.0, 2), (4, None, 4)],
)
def test_thresholds(replicas: int, busy_s: float | None, wanted: int) -> None:
    history = History(T)
    history.append(Snapshot(10.0, 10.0, {"a": Sample(10, 10, 0, replicas, busy_s=busy_s)}))
    plan = Incremental().plan(T, history, {})
    assert plan.replicas == {"a": wanted}
    assert plan.reasons["a"]


def test_thresholds_must_be_in_order() -> None:
    with pytest.raises(InvalidConfig):
        Incremental(lower=0.9)
