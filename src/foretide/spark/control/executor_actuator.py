"""The actuator of an application whose queries are only watched.

Apart from the pipelines' actuator, because it must be importable beside every Spark since 3.5, and
pipelines need a newer one.
"""

from __future__ import annotations

from foretide.model import Plan
from foretide.spark.control.executors import ExecutorPool


class ExecutorActuator:
    """Applies plans to an application whose queries are only watched: executors, nothing else.

    ``guide``: Spark's dynamic allocation stays on and removes what is idle; plans only bring
    executors before it would.
    """

    def __init__(self, executors: ExecutorPool, guide: bool = False) -> None:
        self.executors = executors
        self.guide = guide

    def apply(self, plan: Plan) -> None:
        if plan.executors is None:
            return
        if self.guide:
            self.executors.raise_to(plan.executors)
        else:
            self.executors.request(plan.executors, plan.release)
