"""Replay: recorded windows through a planner again, to check that it decides the same or to see
what another would have done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from foretide.errors import ForetideError
from foretide.guards import Guard, View, guarded
from foretide.history import History
from foretide.model import Decision, Plan
from foretide.parts import Planner
from foretide.topology import Topology


def replay(
    topology: Topology,
    decisions: Iterable[Decision],
    planner: Planner,
    guards: Sequence[Guard] = (),
) -> Iterator[Decision]:
    """Each decision again, with the plans that ``planner`` and ``guards`` make of the same history
    and forecasts.

    Windows that were not planned then are not planned now. A planner that fails gives no plan, as
    in the loop.
    """
    history = History(topology)
    proposals: list[Plan] = []
    for then in decisions:
        if then.snapshot is None:
            history.gap(then.at)
            yield then
            continue
        history.append(then.snapshot)
        if then.proposed is None:
            yield then
            continue
        try:
            proposed = planner.plan(topology, history, then.forecasts)
            plan = guarded(
                proposed, View(topology, history, then.at, tuple(proposals[-100:])), guards
            )
        except ForetideError as error:
            yield replace(then, proposed=None, plan=None, outcome="failed", error=f"plan: {error}")
            continue
        proposals.append(proposed)
        yield replace(then, proposed=proposed, plan=plan)
