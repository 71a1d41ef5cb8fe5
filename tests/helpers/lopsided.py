"""A grouping of a user's own, as `docs/extending.md` describes: a class and one registry line."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from foretide.balance import GROUPINGS
from foretide.balance.grouping import Feedback, Grouping, Ids, Traits
from foretide.balance.keys import Keys
from foretide.registry import Part


class Lopsided(Grouping):
    """Three of four events go to replica 0, every fourth one to the last replica."""

    traits = Traits(wants_reports=True)

    def __init__(self) -> None:
        self.processed: list[list[float]] = []

    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        turns = np.arange(start, start + len(keys))
        return np.where(turns % 4 == 3, replicas - 1, 0).astype(np.int32)

    def learn(self, feedback: Feedback) -> None:
        self.processed.append(feedback.processed.tolist())


@contextmanager
def registered() -> Iterator[str]:
    """The name of the grouping, which is registered meanwhile."""
    GROUPINGS.add(Part("lopsided", "lopsided:Lopsided", "three of four events to replica 0"))
    try:
        yield "lopsided"
    finally:
        GROUPINGS.remove("lopsided")
