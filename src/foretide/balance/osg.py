"""Online Shuffle Grouping in its micro-batch form (DABS-Storm, section 5).

What events cost is learned in Count-Min sketches and each event goes to the replica with the least
estimated work, so that a stage does not wait for one task. The published protocol (sync requests
and per-replica states, in ``osg_machine``) becomes simpler when a batch is the clock: sketches come
back with every batch, estimates go out with the next, and the correction of a replica is its
measured minus its estimated busy time, smoothed. A batch is known as a whole, so its dearest events
are placed first: greedy in any order is within ``2 - 1/k`` of the best assignment, largest first
within ``4/3 - 1/(3k)`` (Graham 1969). Events of a replica keep their order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretide.balance.count_min import CostSketch
from foretide.balance.grouping import CostLearner, Feedback, Ids, Traits
from foretide.balance.keys import Keys
from foretide.balance.osg_phases import Phases
from foretide.jit import entry
from foretide.model import Array

Order = npt.NDArray[np.intp]


@entry
def _assign(costs: Array, order: Order, work: Array, start: int) -> Ids:
    """Event by event in ``order``, each to the replica of least ``work``, which grows by the
    event's cost; round-robin among equals.
    """
    replicas = len(work)
    ids = np.empty(len(costs), dtype=np.int32)
    turn = start % replicas
    for i in order:
        replica = turn
        for j in range(1, replicas):
            at = (turn + j) % replicas
            if work[at] < work[replica]:
                replica = at
        work[replica] += costs[i]
        ids[i] = replica
        turn = (replica + 1) % replicas
    return ids


def warm() -> None:
    """Load the compiled code before a daemon forks workers, so that they need not."""
    learned = OnlineShuffle()
    keys = np.zeros(1, dtype=np.uint64)
    costs = learned.new_sketch()
    costs.update(keys, np.ones(1))
    learned.learn(Feedback(np.ones(1), np.ones(1), 1.0, costs))
    learned.assign(keys, 2)


class OnlineShuffle(CostLearner):
    """Round-robin until the first batch came back; then greedy on learned costs.

    ``memory`` weighs the past against one batch, for costs and corrections alike. Costs belong to
    keys, not to replicas, so they are carried over when the replica count changes; corrections of
    replicas that are gone are dropped. Tasks that assign parts of a batch side by side each apply
    their part's share of the corrections.
    """

    traits = Traits(wants_reports=True, learns_costs=True, compiled=True)

    def __init__(
        self, epsilon: float = 0.05, delta: float = 0.05, seed: int = 0, memory: float = 0.5
    ) -> None:
        self.memory = memory
        self.sketch = CostSketch(epsilon, delta, seed)
        self.phases = Phases()
        self.correction_s: Array = np.zeros(0)
        self.batch_s = 0.0

    @property
    def phase(self) -> str:
        return self.phases.phase

    def new_sketch(self) -> CostSketch:
        """An empty sketch that a replica fills during a batch."""
        fresh = CostSketch.from_bytes(self.sketch.to_bytes())
        fresh.fade(0.0)
        return fresh

    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        costs = self.estimate(keys)
        work = np.zeros(replicas)
        known = self.correction_s[:replicas]
        if len(known) and self.batch_s > 0:
            work[: len(known)] = (known - known.min()) * min(1.0, float(costs.sum()) / self.batch_s)
        return _assign(costs, np.argsort(-costs, kind="stable"), work, start)

    def estimate(self, keys: Keys) -> Array:
        """Estimated seconds of each event; equal for all before anything was learned."""
        return self.sketch.estimate(keys)

    def learn(self, feedback: Feedback) -> None:
        had_costs = (
            self.sketch.events > 0
        )  # without them the estimates were no estimates, and their errors teach nothing
        if feedback.costs is not None and feedback.costs.events > 0:
            self.sketch.fade(self.memory)
            self.sketch.merge(feedback.costs)
            self.phases.ended(feedback.processed, self.sketch)
        if had_costs and feedback.expected_s is not None:
            replicas = len(feedback.busy_s)
            before = np.zeros(replicas)
            kept = self.correction_s[:replicas]
            before[: len(kept)] = kept
            self.batch_s = float(feedback.expected_s.sum())
            self.correction_s = self.memory * before + (1 - self.memory) * (
                feedback.busy_s - feedback.expected_s
            )
