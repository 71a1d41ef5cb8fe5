"""The grouping interface, the traits by which a grouping says what it needs, and the feedback it
gets after a batch: busy time and events per replica, and what each key cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from foretide.balance.count_min import CostSketch
from foretide.balance.keys import Keys
from foretide.model import Array

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Feedback:
    """One batch: ``busy_s`` and ``processed`` per replica. ``costs`` (the replicas' sketches,
    merged) and ``expected_s`` (each replica's work by the grouping's own estimates) are measured
    only for a grouping that learns costs.
    """

    busy_s: Array
    processed: Array
    span_s: float
    costs: CostSketch | None = None
    expected_s: Array | None = None


@dataclass(frozen=True, slots=True)
class Traits:
    """What a grouping needs from the environment that runs it.

    ``keeps_keys``: events of one key must stay together, so keys are made of the operator's key
    columns and not of what its costs depend on. ``wants_reports``: ``learn`` needs the busy time of
    every replica after each batch. ``learns_costs``: it is a ``CostLearner``, so every event is
    timed. ``compiled``: its module compiles code and has a function ``warm`` that does so before
    workers fork. ``same_as``: Spark SQL has an expression for the same rule, so ``assign`` need not
    run in Python there.
    """

    keeps_keys: bool = False
    wants_reports: bool = False
    learns_costs: bool = False
    compiled: bool = False
    same_as: Literal["round-robin", "hash"] | None = None


class Grouping(ABC):
    """Assigns the events of one batch to replicas. Subclasses write ``assign`` and, where they need
    anything, ``traits``. One instance on the driver serves one operator; a pickled copy goes to
    Spark's workers with each batch.

    ``keys`` are 64-bit hashes of what the events' costs or state depend on; ``assign`` returns one
    replica id in ``[0, replicas)`` per event. Callers that run in parallel pass different values of
    ``start``, so that their rounds do not all begin at replica 0.
    """

    traits: ClassVar[Traits] = Traits()

    @abstractmethod
    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids: ...

    @property
    def phase(self) -> str | None:
        """What the grouping does with the next batch, where it has phases."""
        return None

    def learn(self, feedback: Feedback) -> None:  # noqa: B027
        """Take in what a finished batch measured; by default nothing."""


class CostLearner(Grouping):
    """A grouping that learns what the events of a key cost (trait ``learns_costs``)."""

    @abstractmethod
    def new_sketch(self) -> CostSketch:
        """An empty sketch that a replica fills during a batch."""

    @abstractmethod
    def estimate(self, keys: Keys) -> Array:
        """Estimated seconds of each event."""


def cost_learner(grouping: Grouping) -> CostLearner | None:
    """The grouping itself when it learns costs, else None."""
    return cast("CostLearner", grouping) if grouping.traits.learns_costs else None
