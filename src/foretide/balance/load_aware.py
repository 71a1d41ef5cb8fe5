"""Load-aware grouping (PA-SPS, algorithm 1): each event to the replica of lowest utilization.

Utilization of replica j is ``U_j = n_j * service_time_j / span_s``, where n_j events are assigned
to it and service_time_j is the busy time it measured per event. The paper computes U from
*processed* events and one mean service time: a slow replica then looks idle, because it processes
little, and receives more. With assigned events and each replica's own service time it receives
less, as meant.
"""

from __future__ import annotations

import numpy as np

from foretide.balance.grouping import Feedback, Grouping, Ids, Traits
from foretide.balance.keys import Keys
from foretide.jit import entry
from foretide.model import Array


@entry
def _assign(count: int, utilization: Array, step: Array, start: int) -> Ids:
    """Greedy on utilization; round-robin from ``start`` among equals and once all are full."""
    replicas = len(utilization)
    ids = np.empty(count, dtype=np.int32)
    turn = start % replicas
    for i in range(count):
        replica = turn
        for j in range(1, replicas):
            at = (turn + j) % replicas
            if utilization[at] < utilization[replica]:
                replica = at
        if utilization[replica] >= 1.0:
            replica = turn
        utilization[replica] += step[replica]
        ids[i] = replica
        turn = (replica + 1) % replicas
    return ids


def warm() -> None:
    """Load the compiled code before a daemon forks workers, so that they need not."""
    LoadAware().assign(np.zeros(1, dtype=np.uint64), 2)


class LoadAware(Grouping):
    """Starts as round-robin; learns each replica's service time from every batch (halving the
    weight of the past).
    """

    traits = Traits(wants_reports=True, compiled=True)

    def __init__(self, memory: float = 0.5) -> None:
        self.memory = memory
        self.service_s: Array = np.zeros(0)
        self.span_s = 1.0

    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        known = self.service_s[:replicas]
        mean = float(known[known > 0].mean()) if (known > 0).any() else 1e-9
        step = np.full(replicas, mean)
        step[: len(known)] = np.where(known > 0, known, mean)
        return _assign(len(keys), np.zeros(replicas), step / self.span_s, start)

    def learn(self, feedback: Feedback) -> None:
        replicas = len(feedback.busy_s)
        if len(self.service_s) < replicas:
            self.service_s = np.concatenate(
                [self.service_s, np.zeros(replicas - len(self.service_s))]
            )
        worked = feedback.processed > 0
        now = feedback.busy_s[worked] / feedback.processed[worked]
        before = self.service_s[:replicas][worked]
        self.service_s[:replicas][worked] = np.where(
            before > 0, self.memory * before + (1 - self.memory) * now, now
        )
        self.span_s = max(feedback.span_s, 1e-9)
