"""The actuator: replicas of operators from their next micro-batch on, and executors to hold them."""

from __future__ import annotations

from foretide.model import Plan
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.run.running import Running


class PipelineActuator:
    """Applies plans to one running pipeline. Executors = what the plan says, else as many as hold
    the sum of all replicas.
    """

    def __init__(self, running: Running, executors: ExecutorPool) -> None:
        self.running = running
        self.executors = executors

    def apply(self, plan: Plan) -> None:
        slots = sum({**self.running.replicas, **plan.replicas}.values())
        total = plan.executors if plan.executors is not None else self.executors.wanted_for(slots)
        self.running.set_replicas(plan.replicas)
        self.executors.request(max(1, total), plan.release)


class ExecutorActuator:
    """Applies plans to an application whose queries are only watched: executors, nothing else."""

    def __init__(self, executors: ExecutorPool) -> None:
        self.executors = executors

    def apply(self, plan: Plan) -> None:
        if plan.executors is not None:
            self.executors.request(plan.executors, plan.release)
