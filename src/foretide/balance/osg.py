"""Online Shuffle Grouping in its micro-batch form (DABS-Storm, section 5).

What events cost is learned in Count-Min sketches and each event goes to the replica with the least estimated work, so that a stage does
not wait for one task. The published protocol (sync requests and per-replica states, in ``osg_machine``) becomes simpler when a batch is the
clock: sketches come back with every batch, estimates go out with the next, and the correction of a replica is its measured minus its
estimated busy time, smoothed. Greedy on known costs is within ``2 - 1/k`` of the best assignment (Graham 1969).
"""

from __future__ import annotations

import numpy as np

from foretide.balance.count_min import Coefficients, CostSketch, mean_cost
from foretide.balance.grouping import Feedback, Ids
from foretide.balance.keys import Keys
from foretide.jit import entry
from foretide.model import Array


@entry
def _assign(keys: Keys, work: Array, counts: Array, times: Array, coefficients: Coefficients, unknown: float, start: int) -> Ids:
    """Each event to the replica of least ``work``, which grows by the event's estimate; round-robin among equals."""
    replicas = len(work)
    ids = np.empty(len(keys), dtype=np.int32)
    turn = start % replicas
    for i in range(len(keys)):
        chosen = turn
        for j in range(1, replicas):
            at = (turn + j) % replicas
            if work[at] < work[chosen]:
                chosen = at
        work[chosen] += mean_cost(counts, times, coefficients, keys[i], unknown)
        ids[i] = chosen
        turn = (chosen + 1) % replicas
    return ids


class OnlineShuffle:
    """Round-robin until the first batch came back; then greedy on learned costs.

    ``memory`` weighs the past against one batch, for costs and corrections alike. Costs belong to keys, not to replicas, so they are
    carried over when the replica count changes; corrections of replicas that are gone are dropped.
    """

    def __init__(self, epsilon: float = 0.05, delta: float = 0.05, seed: int = 0, memory: float = 0.5) -> None:
        self.memory = memory
        self.sketch = CostSketch(epsilon, delta, seed)
        self.correction_s: Array = np.zeros(0)

    def new_sketch(self) -> CostSketch:
        """An empty sketch that a replica fills during a batch."""
        fresh = CostSketch.from_bytes(self.sketch.to_bytes())
        fresh.fade(0.0)
        return fresh

    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        work = np.zeros(replicas)
        known = self.correction_s[:replicas]
        work[: len(known)] = known - known.min() if len(known) else 0.0
        s = self.sketch
        unknown = s.mean_s or 1e-9
        return _assign(keys, work, s.counts.cells, s.times.cells, s.counts.coefficients, unknown, start)

    def estimate(self, keys: Keys) -> Array:
        """Estimated seconds of each event."""
        return self.sketch.estimate(keys)

    def learn(self, feedback: Feedback) -> None:
        had_costs = self.sketch.events > 0  # without them the estimates were no estimates, and their errors teach nothing
        if feedback.costs is not None and feedback.costs.events > 0:
            self.sketch.fade(self.memory)
            self.sketch.merge(feedback.costs)
        if had_costs and feedback.expected_s is not None:
            replicas = len(feedback.busy_s)
            before = np.zeros(replicas)
            kept = self.correction_s[:replicas]
            before[: len(kept)] = kept
            self.correction_s = self.memory * before + (1 - self.memory) * (feedback.busy_s - feedback.expected_s)
