"""The actuator: replicas of operators from their next micro-batch on, and executors to hold
them.
"""

from __future__ import annotations

import logging

from foretide.errors import ActuationError
from foretide.model import Decision, Plan
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.run.running import Running

log = logging.getLogger(__name__)


class PipelineActuator:
    """Applies plans to one running pipeline. Executors = what the plan says, else as many as hold
    the sum of all replicas. Operators move before the executors they leave are given back; a batch
    under way ends where it began.
    """

    def __init__(self, running: Running, executors: ExecutorPool) -> None:
        self.running = running
        self.executors = executors

    def apply(self, plan: Plan) -> None:
        slots = sum({**self.running.replicas, **plan.replicas}.values())
        total = plan.executors if plan.executors is not None else self.executors.wanted_for(slots)
        self.running.set_replicas(plan.replicas)
        if plan.placement is not None:
            self.running.placement.ask(plan.placement, self.executors.locations(plan.release))
        self.executors.request(max(1, total), plan.release)

    def resume(self) -> None:
        """After a restart: the executors that hold the replicas last set. The ones before went with
        the driver, and a plan that changes no replicas would not ask for them.
        """
        if not self.running.folder.saved_replicas():
            return
        try:
            self.executors.request(self.executors.wanted_for(sum(self.running.replicas.values())))
        except ActuationError as error:
            log.warning("the replicas of the last run have no executors yet: %s", error)

    def settle(self, decision: Decision) -> None:
        """Once per window, also where no plan changed anything: see ``ExecutorPool.settle``."""
        if decision.mode != "act":
            return
        try:
            self.executors.settle()
        except ActuationError as error:
            log.warning("executors that no replica needs could not be given back: %s", error)
