"""The actuator: replicas of operators from their next micro-batch on, and executors to hold
them.
"""

from __future__ import annotations

import logging

from foretide.errors import ActuationError, InvalidConfig
from foretide.model import Decision, Plan
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.run.running import Running

log = logging.getLogger(__name__)


class PipelineActuator:
    """Applies plans to one running pipeline. Executors = what the plan says, else as many as hold
    the sum of all replicas; with ``pool``, at least as many as hold so many replicas of every
    operator (PA-SPS, section 3: replicas of the pool are activated, not started). Operators move
    before the executors they leave are given back; a batch under way ends where it began.
    """

    def __init__(self, running: Running, executors: ExecutorPool, pool: int | None = None) -> None:
        self.running = running
        self.executors = executors
        self.pooled = 0 if pool is None else pool * len(running.topology.names)
        if executors.local and self.pooled > executors.slots():
            raise InvalidConfig(
                f"{self.pooled} slots are needed for {pool} replicas of every operator, and local "
                f"mode has {executors.slots()}: give --master 'local[{self.pooled}]', or a smaller "
                "--pool"
            )

    def apply(self, plan: Plan) -> None:
        slots = sum({**self.running.replicas, **plan.replicas}.values())
        total = plan.executors if plan.executors is not None else self.executors.wanted_for(slots)
        if self.pooled:
            total = max(total, self.executors.wanted_for(self.pooled))
        self.running.set_replicas(plan.replicas)
        if plan.placement is not None:
            self.running.placement.ask(plan.placement, self.executors.locations(plan.release))
        self.executors.request(max(1, total), plan.release)

    def resume(self) -> None:
        """After a restart: the executors that hold the replicas last set. The ones before went with
        the driver, and a plan that changes no replicas would not ask for them. A pool is asked for
        at every start.
        """
        if not self.running.folder.saved_replicas() and not self.pooled:
            return
        slots = max(self.pooled, sum(self.running.replicas.values()))
        try:
            self.executors.request(self.executors.wanted_for(slots))
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
