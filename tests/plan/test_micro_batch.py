import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import Forecast, Sample, Snapshot
from foretide.plan.micro_batch import MicroBatch, slots
from foretide.topology import Operator, Topology

ONE = Topology((Operator("q"),))


@given(
    work=st.floats(0.01, 50), interval=st.floats(0.1, 5), overhead=st.floats(0.05, 2), target=st.floats(1, 30)
)  # fmt: skip
def test_the_smallest_number_of_slots_that_meets_the_target(
    work: float, interval: float, overhead: float, target: float
) -> None:
    """Against the definition: with s slots an event waits at most interval + overhead + interval *
    work / s.
    """
    found = slots(work, interval, overhead, target)

    def good(s: float) -> bool:
        reachable = interval + overhead < target
        in_time = interval + overhead + interval * work / s <= target * (1 + 1e-6)
        return (in_time or not reachable) and work / s <= 0.8 * (1 + 1e-6)

    assert good(found)
    assert not good(found * 0.999)


def history(batches: float | None = 10.0) -> History:
    """One window of 10 s: 1000 events, 20 busy seconds, 10 batches of 0.8 s on 4 slots: 0.3 s of
    each is fixed cost.
    """
    h = History(ONE)
    h.append(
        Snapshot(
            10.0, 10.0, {"q": Sample(1000, 1000, 0, 4, busy_s=20.0, batches=batches, batch_s=0.8)}
        )
    )
    return h


def test_worked_example() -> None:
    """Interval 1 s, fixed 0.8 - 20/10/4 = 0.3 s, forecast 200/s at 20 ms = 4 slots busy; target 1.8
    s: 1 * 4 / 0.5 = 8 slots.
    """
    plan = MicroBatch(target_s=1.8, cores=3).plan(ONE, history(), {"q": Forecast((150.0, 200.0))})
    assert plan.replicas == {"q": 8}
    assert plan.executors == 3
    assert "200.0 events/s at 20.00 ms keep 4.00 slots busy" in plan.reasons["q"]


def test_the_upper_quantile_is_planned_for_and_the_maximum_holds() -> None:
    plan = MicroBatch(target_s=60.0, max_executors=4).plan(
        ONE, history(), {"q": Forecast((100.0,), (400.0,))}
    )
    assert plan.replicas == {"q": 10}, "8 slots busy at 80 %"
    assert plan.executors == 4
    assert "held at the maximum of 4" in plan.reasons[""]


def test_a_target_below_the_micro_batch_floor_is_said_plainly() -> None:
    plan = MicroBatch(target_s=1.0).plan(ONE, history(), {})
    assert "shorten the trigger or relax the target" in plan.reasons["q"]
    assert plan.replicas == {"q": 3}, "what keeps up: 2 busy slots at 80 %, rounded up"


def test_small_queries_share_an_executor() -> None:
    both = Topology((Operator("a"), Operator("b")))
    h = History(both)
    small = Sample(100, 100, 0, 2, busy_s=1.0, batches=10, batch_s=0.3)
    h.append(Snapshot(10.0, 10.0, {"a": small, "b": small}))
    plan = MicroBatch(target_s=10.0, cores=1).plan(both, h, {})
    assert plan.executors == 1
    assert plan.replicas == {"a": 1, "b": 1}


def test_nothing_known_is_not_ready() -> None:
    with pytest.raises(NotReady, match="has not finished a batch"):
        MicroBatch().plan(ONE, history(batches=None), {})
