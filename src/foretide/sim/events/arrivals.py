"""When the next event comes from outside, which value it carries and which source receives it:
compiled code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretide.jit import lean_inner as inner
from foretide.sim.events.jobs import new_job
from foretide.sim.events.rng import ARRIVALS, exponential, uniform
from foretide.sim.events.state import (
    ARRIVALS_LAW,
    BATCH_S,
    BIN,
    BIN_S,
    BURST,
    CARRY,
    EVEN,
    NEXT_ARRIVAL,
    NONE,
    POISSON,
)


@inner
def schedule_arrival(s: Any, after: float) -> None:
    """Set the instant of the next arrival; infinity when the load is over."""
    if s.count[ARRIVALS_LAW] == POISSON:
        s.clock[NEXT_ARRIVAL] = _next_in(s, after, exponential(s.rng, ARRIVALS))
    elif s.count[ARRIVALS_LAW] == EVEN:
        first = after == 0.0  # half a gap, or events would come at the very instants of triggers
        s.clock[NEXT_ARRIVAL] = _next_in(s, after, 0.5 if first else 1.0)
    else:
        s.clock[NEXT_ARRIVAL] = _batched(s)


@inner
def _next_in(s: Any, after: float, left: float) -> Any:
    """The instant by which the intervals' rates add up to ``left`` events: a unit exponential gives
    a Poisson process whose rate is constant within an interval, 1 evenly spaced events.
    """
    bin_s, t = s.clock[BIN_S], after
    i = s.count[BIN]
    while i < s.rates.size:
        end = (i + 1) * bin_s
        if s.rates[i] * (end - t) > left:
            s.count[BIN] = i
            return t + left / s.rates[i]
        left -= s.rates[i] * (end - t)
        t = end
        i += 1
    s.count[BIN] = i
    return np.inf


@inner
def _batched(s: Any) -> Any:
    """All events of a second (or less: an interval of the load is whole batches) at its start;
    fractions of events are carried on.
    """
    batch_s = s.clock[BATCH_S]
    while s.count[BURST] == 0:
        i = int((s.count[BIN] + 0.5) * batch_s / s.clock[BIN_S])
        if i >= s.rates.size:
            return np.inf
        s.clock[CARRY] += s.rates[i] * batch_s
        s.count[BURST] = int(s.clock[CARRY] + 1e-6)
        s.clock[CARRY] -= s.count[BURST]
        s.count[BIN] += 1
    s.count[BURST] -= 1
    return (s.count[BIN] - 1) * batch_s


@inner
def draw_value(s: Any) -> int:
    """An event value by its probability: the first whose cumulated probability is above a uniform
    draw.
    """
    if s.value_cdf.size == 1:
        return 0
    u = uniform(s.rng, ARRIVALS)
    low, high = 0, s.value_cdf.size - 1
    while low < high:
        middle = (low + high) >> 1
        if s.value_cdf[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@inner
def new_arrival(s: Any, now: float) -> Any:
    """A job for an event from outside: sources share the load equally."""
    pick = 0 if s.sources.size == 1 else int(uniform(s.rng, ARRIVALS) * s.sources.size)
    op = s.sources[pick]
    s.w_ops[op].offered += 1.0
    job = new_job(s, now, draw_value(s))
    s.jobs[job].to = op
    s.jobs[job].next = NONE
    return job
