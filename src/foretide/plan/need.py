"""How many replicas a rate needs, from what a planner has measured."""

from __future__ import annotations

from foretide.errors import NotReady
from foretide.history import History
from foretide.quantities import need

__all__ = ["known_service_time_s", "need"]


def known_service_time_s(history: History, name: str) -> float:
    """The measured service time, or NotReady: a planner never invents one."""
    measured = history.service_time_s(name)
    if measured is None:
        raise NotReady(
            f"operator '{name}' has not processed an event yet: its service time is unknown"
        )
    return measured
