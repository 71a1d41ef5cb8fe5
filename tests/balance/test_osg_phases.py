"""OSG's scheduler phases where a batch is the clock."""

import numpy as np

from foretide.balance.count_min import CostSketch
from foretide.balance.grouping import Feedback
from foretide.balance.osg import OnlineShuffle
from foretide.balance.osg_phases import RUN, SEND_ALL, WAIT_ALL, Phases

KEYS = np.arange(20, dtype=np.uint64)


def batch(grouping: OnlineShuffle, processed: list[float], cost_s: float = 0.01) -> str:
    """The phase that a batch ran in."""
    phase, costs = grouping.phase, CostSketch()
    events = int(sum(processed))
    costs.update(np.resize(KEYS, events), np.full(events, cost_s))
    busy_s = cost_s * np.array(processed)
    grouping.learn(Feedback(busy_s, np.array(processed), 1.0, costs, busy_s))
    return phase


def test_phases_cycle_as_sketches_come_and_stay_stable():
    grouping = OnlineShuffle()
    seen = [batch(grouping, [50.0, 50.0]) for _ in range(10)]
    assert seen[:3] == ["ROUND_ROBIN", "SEND_ALL", "RUN"]
    assert seen[3:] == ["RUN", "RUN", "SEND_ALL", "RUN", "RUN", "RUN", "SEND_ALL"]


def test_a_replica_without_an_event_is_waited_for():
    grouping = OnlineShuffle()
    seen = [
        batch(grouping, p) for p in ([9.0, 9.0], [9.0, 0.0], [9.0, 0.0], [9.0, 9.0], [9.0, 9.0])
    ]
    assert seen == ["ROUND_ROBIN", "SEND_ALL", "WAIT_ALL", "WAIT_ALL", "RUN"]


def test_other_replicas_are_asked_again():
    grouping = OnlineShuffle()
    for _ in range(3):
        batch(grouping, [9.0, 9.0])
    assert grouping.phase == RUN
    batch(grouping, [9.0, 9.0, 9.0])
    assert grouping.phase == SEND_ALL


def test_sketches_that_change_are_not_sent():
    phases = Phases(window=100, mu=0.05)
    cheap, dear = CostSketch(), CostSketch()
    cheap.update(KEYS, np.full(20, 0.01))
    dear.update(KEYS, np.full(20, 0.05))
    phases.ended(np.array([100.0]), cheap)
    phases.ended(np.array([100.0]), cheap)
    assert phases.phase == RUN
    phases.ended(np.array([100.0]), dear)
    assert phases.phase == RUN
    phases.ended(np.array([100.0]), dear)
    assert phases.phase == SEND_ALL


def test_a_batch_that_taught_nothing_changes_nothing():
    phases = Phases()
    phases.ended(np.array([5.0]), CostSketch())
    assert phases.phase == "ROUND_ROBIN"
    assert WAIT_ALL not in vars(phases).values()
