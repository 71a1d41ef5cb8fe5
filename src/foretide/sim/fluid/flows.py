"""The fluid engine's mathematics, compiled: how much of a queue a short step serves. No events,
only rates.

Events that come as a Poisson process meet a queue that follows its stationary law point by point
(Rider 1976; Wang, Tipper and Banerjee 1996): ``dL/dt = lambda - rho(L)*k/et``, where ``rho(L)`` is
the utilization at which the stationary queue holds L events. Events that come a second at a time
meet a fluid that is served at full capacity while there is any.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from foretide.jit import lean_entry as entry
from foretide.jit import lean_inner as inner
from foretide.sim.fluid.stationary import departure_scv, effective_scv, sent_on, stationary_level

# op: columns per operator
(
    REPLICAS,
    SERVICE_S,
    SCV_SERVICE,
    GROUPING,
    PAUSED,
    LEVEL,
    RHO,
    SCV_ARRIVAL,
    AGE,
    IN_BIN,
    FED_BACK,
) = range(11)
LONG, SIMULTANEOUS, ALIKE, SHORT, FILTER = range(
    11, 16
)  # what ``stationary`` asks for; the first three never change
# of the events that leave: how often they were here, per input of the app, and the chance to leave
STOPS, PER_INPUT, LEAVING, OP = range(16, 20)
# window: sums since the last measurement
ARRIVED, OFFERED, PROCESSED, DROPPED, AREA, BUSY_S, W_OP = range(7)
NOW, STEP_S, BATCH_S, INTERVAL_S, TIMEOUT_S, OFFERED_ALL, ROW, CLOCK = range(8)
# rows: a step, or a batch of events, since the last measurement
R_TIME, R_OFFERED, R_QUEUE, R_CHANCE, R_LEFT, W_ROW = range(6)
OVERLOAD = 0.97
"""Utilization beyond which a queue is not the stationary one."""
BINS = 32  # of arrivals within the last timeout, per operator


class Flows(NamedTuple):
    """All that the fluid engine reads and writes."""

    clock: Any
    rates: Any  # offered events/s per interval of the load
    sources: Any
    order: Any  # operators, upstream first
    shares: Any  # [p, c]: emitted to c per event processed by p
    back: Any  # [p, c]: 1 when the edge closes a loop
    op: Any
    window: Any
    sent: Any  # [p, c]: emitted in this window
    done: Any  # processed in this step
    recent: Any  # arrivals per operator in the last BINS parts of the timeout, the newest in bin 0
    ages: Any  # the age those events had when they came, summed
    seats: Any  # [op, host]: replicas on a host
    host_cores: Any
    host_cpu_s: Any  # [op, host]: CPU seconds in this window
    rows: Any  # what left since the last measurement, and what waited then, for ``ages``


@inner
def _level(f: Any, i: int, rho: float) -> Any:
    """The stationary level of an operator as it is now."""
    cs = f.op[i, SCV_SERVICE]
    ca = effective_scv(rho, cs, f.op[i, LONG], f.op[i, SHORT], f.op[i, FILTER]) + f.op[i, ALIKE]
    return stationary_level(
        rho, int(f.op[i, REPLICAS]), ca, cs, f.op[i, SIMULTANEOUS], int(f.op[i, GROUPING])
    )


@inner
def _stationary_step(f: Any, i: int, came: float, capacity: float, step_s: float) -> Any:
    """Events served in a step: the root rho of ``L(rho) = L0 + came - rho*capacity*step`` by regula
    falsi (Illinois).

    A queue left by an overload did not run empty in a step that it outlasts, whatever the
    stationary law says: with probability ``1 - exp(-2*L0*L1/spread)`` (a Brownian bridge from L0 to
    L1 that stays above 0; L0 counts beyond the level that is stationary under what comes now) all
    replicas were busy throughout.
    """
    level = f.op[i, LEVEL] + came
    most = capacity * step_s
    low, high = 0.0, min(1.0 - 1e-9, level / most)
    g_low = -level
    g_high = _level(f, i, high) - level + high * most
    rho = high
    if g_high > 0.0:
        for _ in range(60):
            rho = (low * g_high - high * g_low) / (g_high - g_low)
            g = _level(f, i, rho) - level + rho * most
            if abs(g) < 1e-6 * (1.0 + level) or high - low < 1e-12:
                break
            if g > 0.0:
                high, g_high = rho, g
                g_low /= 2.0
            else:
                low, g_low = rho, g
                g_high /= 2.0
    left = level - most
    came += f.op[i, FED_BACK]  # by now, as the queue sees it
    begun = level - came
    if left > 0.0 and begun > 0.0:
        beyond = begun - (_level(f, i, came / most) if came < most else 0.0)
        spread = (f.op[i, LONG] + f.op[i, SIMULTANEOUS] + f.op[i, SCV_SERVICE]) * came
        if beyond > 0.0:
            rho = 1.0 - (1.0 - rho) * (
                math.exp(-2.0 * beyond * left / spread) if spread > 0.0 else 0.0
            )
    f.op[i, RHO] = min(rho, 1.0 - 1e-9)
    return rho * most


@inner
def _departures(f: Any, i: int) -> Any:
    """Variation of the gaps between departures."""
    return departure_scv(
        f.op[i, RHO], f.op[i, REPLICAS], f.op[i, SCV_ARRIVAL], f.op[i, SCV_SERVICE]
    )


@inner
def _short_departures(f: Any, i: int) -> Any:
    """Variation of departures over short times: of service where the operator is the busiest so
    far, else between both, by rho^2.
    """
    came, rho2 = f.op[i, SHORT] + f.op[i, SIMULTANEOUS], f.op[i, RHO] ** 2
    return (
        f.op[i, SCV_SERVICE]
        if f.op[i, RHO] >= f.op[i, FILTER]
        else (1.0 - rho2) * came + rho2 * f.op[i, SCV_SERVICE]
    )


@inner
def _capacity(f: Any, i: int) -> Any:
    """Events/s of all replicas; a host on which more replicas are busy than it has cores slows
    them.
    """
    if f.op[i, PAUSED] > 0:
        return 0.0
    if f.host_cores.size == 0:
        return f.op[i, REPLICAS] / f.op[i, SERVICE_S]
    active = 0.0
    for h in range(f.host_cores.size):
        busy = 0.0
        for j in range(f.op.shape[0]):
            busy += f.seats[j, h] * f.op[j, RHO]
        active += f.seats[i, h] * min(1.0, f.host_cores[h] / max(busy, 1e-12))
    return active / f.op[i, SERVICE_S]


@inner
def _bin_s(f: Any, step_s: float) -> Any:
    """Seconds that a bin of recent arrivals holds: whole steps, about a 32nd of the timeout."""
    return max(1.0, math.ceil(f.clock[TIMEOUT_S] / BINS / step_s - 1e-9)) * step_s


@inner
def _drop_old(f: Any, i: int, step_s: float) -> Any:
    """Events that are older than the timeout when their turn comes: all beyond what came within the
    time that is left to them.
    """
    if f.clock[TIMEOUT_S] == np.inf:
        return 0.0
    young, at, bin_s = 0.0, 0.0, _bin_s(f, step_s)
    for b in range(BINS):
        if young >= f.op[i, LEVEL]:
            return 0.0
        length = f.op[i, IN_BIN] if b == 0 else bin_s
        left_s = f.clock[TIMEOUT_S] - f.ages[i, b] / max(f.recent[i, b], 1e-12) - at
        take = min(1.0, max(0.0, left_s) / max(length, 1e-12))
        young += f.recent[i, b] * take
        at += length
    dropped = max(0.0, f.op[i, LEVEL] - young)
    f.op[i, LEVEL] -= dropped
    return dropped


@inner
def _head_age_s(f: Any, i: int, step_s: float) -> Any:
    """The age of the event at the head of the queue: it came as far back as the arrivals since then
    fill the queue.
    """
    if f.clock[TIMEOUT_S] == np.inf:
        return 0.0
    counted, at, bin_s = 0.0, 0.0, _bin_s(f, step_s)
    for b in range(BINS):
        length, came = f.op[i, IN_BIN] if b == 0 else bin_s, f.recent[i, b]
        if counted + came >= f.op[i, LEVEL]:
            waited_s = at + length * (f.op[i, LEVEL] - counted) / max(came, 1e-12)
            return waited_s + (f.ages[i, b] / came if came > 0.0 else 0.0)
        counted += came
        at += length
    return at


@inner
def _remember(f: Any, i: int, came: float, step_s: float) -> None:
    if f.clock[TIMEOUT_S] == np.inf:
        return
    if f.op[i, IN_BIN] >= _bin_s(f, step_s) * (1.0 - 1e-9):
        for b in range(BINS - 1, 0, -1):
            f.recent[i, b] = f.recent[i, b - 1]
            f.ages[i, b] = f.ages[i, b - 1]
        f.recent[i, 0] = 0.0
        f.ages[i, 0] = 0.0
        f.op[i, IN_BIN] = 0.0
    f.recent[i, 0] += came
    f.ages[i, 0] += came * f.op[i, AGE]
    f.op[i, IN_BIN] += step_s


@inner
def _offered(f: Any, t: float, step_s: float) -> Any:
    """Events offered between t and t + step to every source; a step may lie in several intervals of
    the load.
    """
    interval_s, batch_s, came = f.clock[INTERVAL_S], f.clock[BATCH_S], 0.0
    if batch_s > 0.0:
        begins = math.ceil(t / batch_s - 1e-6) * batch_s
        i = int((begins + 0.5 * batch_s) / interval_s)
        return (
            f.rates[i] * batch_s / f.sources.size
            if begins < t + step_s * (1.0 - 1e-6) and i < f.rates.size
            else 0.0
        )
    i = int(t / interval_s)
    while i < f.rates.size and i * interval_s < t + step_s:
        came += f.rates[i] * max(
            0.0, min(t + step_s, (i + 1) * interval_s) - max(t, i * interval_s)
        )
        i += 1
    return came / f.sources.size


@inner
def _area(level: float, after: float, capacity: float, step_s: float) -> Any:
    """Event-seconds queued in a step that began with ``level``: a trapezoid, or a triangle when the
    queue ran empty within it.
    """
    if after == 0.0 and capacity > 0.0:
        return 0.5 * level * min(step_s, level / capacity)
    return 0.5 * (level + after) * step_s


@inner
def _serve(f: Any, i: int, came: float, at_once: float, step_s: float) -> None:
    """One operator in one step; what it emits along a loop's closing edge is received at once and
    served in the next step.
    """
    f.window[i, ARRIVED] += came
    _remember(f, i, came, step_s)
    before = f.op[i, LEVEL]
    capacity = _capacity(f, i)
    if capacity == 0.0 or before + came == 0.0:
        done = 0.0
        f.op[i, RHO] = 0.0
    elif f.clock[BATCH_S] == 0.0:
        done = _stationary_step(f, i, came, capacity, step_s)
    else:
        done = min(before + came, capacity * step_s)
        f.op[i, RHO] = done / (capacity * step_s)
    f.op[i, LEVEL] = before + came - done if done < before + came else 0.0
    dropped = _drop_old(f, i, step_s)
    f.window[i, PROCESSED] += done
    f.window[i, DROPPED] += dropped
    held = _area(before - f.op[i, FED_BACK] + at_once, f.op[i, LEVEL], capacity, step_s)
    if (
        f.clock[BATCH_S] > 0.0
    ):  # a service under way holds its event whole until it is done, on average for half its time
        held += 0.5 * (1.0 - f.op[i, SCV_SERVICE]) * done * f.op[i, SERVICE_S]
    f.window[i, AREA] += max(held, done * f.op[i, SERVICE_S])
    f.op[i, FED_BACK] = 0.0
    f.window[i, BUSY_S] += done * f.op[i, SERVICE_S]
    for h in range(f.host_cores.size):
        f.host_cpu_s[i, h] += done * f.op[i, SERVICE_S] * f.seats[i, h] / f.op[i, REPLICAS]


@inner
def _empty(f: Any) -> bool:
    total = 0.0
    for i in range(f.op.shape[0]):
        total += f.op[i, LEVEL]
    return total == 0.0


@inner
def _next_batch_step(f: Any, t: float, begin: float, step_s: float) -> int:
    """The step in which the next second's events come: nothing happens in an empty environment
    before.
    """
    batch_s = f.clock[BATCH_S]
    if batch_s == 0.0:
        return 0
    return int(((math.floor(t / batch_s + 1e-6) + 1.0) * batch_s - begin) / step_s + 1e-6)


@inner
def _record(f: Any, t: float, step_s: float, last: bool) -> None:
    """What left in a step and how long chance made it wait; at the end of a row, what waits where
    replicas cannot keep up, in inputs of the app.
    """
    row, batch_s = int(f.clock[ROW]), f.clock[BATCH_S]
    left, chance_s, queue = 0.0, 0.0, 0.0
    for i in range(f.op.shape[0]):
        left += f.done[i] * f.op[i, LEAVING]
        level, busy = f.op[i, LEVEL], f.op[i, REPLICAS] * f.op[i, RHO]
        if batch_s > 0.0:
            queue += level * f.op[i, PER_INPUT]
        elif f.op[i, RHO] > OVERLOAD:
            queue += max(0.0, level - busy) * f.op[i, PER_INPUT]
        elif f.done[i] > 0.0:
            chance_s += f.op[i, STOPS] * max(0.0, level - busy) * step_s / f.done[i]
    f.rows[row, R_LEFT] += left
    f.rows[row, R_CHANCE] += left * chance_s
    f.rows[row, R_TIME], f.rows[row, R_OFFERED] = t + step_s, f.clock[OFFERED_ALL]
    f.rows[row, R_QUEUE] = queue
    ends = batch_s == 0.0 or last
    if batch_s > 0.0:
        ends = ends or math.floor((t + step_s) / batch_s + 1e-6) > math.floor(t / batch_s + 1e-6)
    if ends and row + 1 < f.rows.shape[0]:
        f.clock[ROW] += 1.0


@entry
def advance(f: Any, until: float) -> None:
    """Live on to ``until`` in steps of at most STEP_S."""
    steps = max(1, math.ceil((until - f.clock[NOW]) / f.clock[STEP_S] - 1e-9))
    step_s, begin = (until - f.clock[NOW]) / steps, f.clock[NOW]
    n = 0
    while n < steps:
        t = begin + n * step_s
        n += 1
        offered = _offered(f, t, step_s)
        if offered == 0.0 and _empty(f):
            n = max(n, _next_batch_step(f, t, begin, step_s))
            continue
        for place in range(f.order.size):
            i = f.order[place]
            came, scv, age = 0.0, 0.0, 0.0
            short, passed = 0.0, 0.0
            before_offered = f.window[i, OFFERED]
            for s in range(f.sources.size):
                if f.sources[s] == i:
                    came += offered
                    scv += offered
                    short += offered
                    f.window[i, OFFERED] += offered
                    f.clock[OFFERED_ALL] += offered
            for p in range(f.op.shape[0]):
                if f.shares[p, i] > 0.0 and f.back[p, i] == 0.0:
                    flow = f.done[p] * f.shares[p, i]
                    came += flow
                    scv += flow * sent_on(_departures(f, p), f.shares[p, i])
                    short += flow * (1.0 + f.shares[p, i] * (_short_departures(f, p) - 1.0))
                    passed += flow * max(f.op[p, RHO], f.op[p, FILTER])
                    age += flow * _head_age_s(f, p, step_s)
            f.op[i, SCV_ARRIVAL] = scv / came if came > 0.0 else 1.0
            f.op[i, SHORT] = short / came if came > 0.0 else 1.0
            f.op[i, FILTER] = passed / came if came > 0.0 else 0.0
            f.op[i, AGE] = age / came if came > 0.0 else 0.0
            processed = f.window[i, PROCESSED]
            _serve(
                f,
                i,
                came,
                came if f.clock[BATCH_S] > 0.0 and f.window[i, OFFERED] > before_offered else 0.0,
                step_s,
            )
            f.done[i] = f.window[i, PROCESSED] - processed
        for p in range(f.op.shape[0]):
            for c in range(f.op.shape[0]):
                flow = f.done[p] * f.shares[p, c]
                f.sent[p, c] += flow
                if f.back[p, c] > 0.0:
                    f.op[c, LEVEL] += flow
                    f.op[c, FED_BACK] += flow
                    f.window[c, ARRIVED] += flow
                    f.recent[c, 0] += flow
        _record(f, t, step_s, n >= steps)
    f.clock[NOW] = until
