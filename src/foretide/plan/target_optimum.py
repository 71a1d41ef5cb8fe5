"""The cheapest schedule that keeps a promise: a share of the work done within a latency target.

Pure mathematics on one operator as a fluid; knows nothing of topologies or forecasts. Work is
counted in replica-windows: 1.0 is what one busy replica does in one window.

Method. Work arrives evenly within a window, or within each of its equal parts where those are
given, and is served in order. With A the cumulated arrivals and D the target in windows, work that
came at time u is late unless all of A(u) is done by u + D. A backlog is carried where allowed.
Dynamic programming over (replicas, backlog) minimizes ``W + price * late work`` exactly on a grid
of ``grid`` parts of a replica-window; arrivals are rounded cumulatively, so that no work is lost
and the error never adds up. For any price of late work this minimum less ``price * allowed`` is a
lower bound on W (Lagrange); the best such price gives the bound, and the cheapest schedule seen on
the way that keeps the share gives the other side. Their distance is the gap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from foretide.errors import InvalidRecord
from foretide.jit import entry, inner
from foretide.model import Array, WindowPrices
from foretide.plan.fluid import deadlines, late_work, reachable
from foretide.plan.optimum import Schedule, schedule_cost

GRID = 8
LEVELS = 64
COARSEST = 2
STATES = 8_000
"""Pairs of replicas and backlog that the table may have; a larger problem gets a coarser grid."""
ROUNDS = 12


@dataclass(frozen=True, slots=True, eq=False)
class TargetOptimum:
    """``low``: no schedule that keeps the promise is cheaper. ``schedule`` keeps it and costs
    ``cost``; ``gap`` is how much more that is, relative to ``low``.
    """

    low: float
    cost: float
    schedule: Schedule

    @property
    def gap(self) -> float:
        return self.cost / self.low - 1.0 if self.low > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Promise:
    """``share`` of the work is done within ``windows`` windows of its arrival."""

    windows: float
    share: float = 0.99

    def __post_init__(self) -> None:
        if not (math.isfinite(self.windows) and self.windows >= 0 and 0 < self.share <= 1):
            raise InvalidRecord(f"{self}: need windows >= 0 and 0 < share <= 1")


def target_optimum(
    work: Array,
    promise: Promise,
    prices: WindowPrices,
    start: int,
    max_replicas: int | None = None,
    least: int = 1,
    lead: int = 0,
) -> TargetOptimum:
    """The cheapest schedule of one operator for work as it came, in replica-windows per window; or
    in each equal part of the windows, one row per window.

    ``start`` replicas run before the first window, ``least`` to ``max_replicas`` later; in the
    first ``lead`` windows no more than ``start``. Where even ``max_replicas`` cannot keep the
    share, the schedule that comes nearest is returned: all of them until the queue is gone.

    # a burst of 3 in a window that two may share needs no third replica
    >>> target_optimum(np.array([1.0, 3.0, 1.0]), Promise(1.0, 1.0), WindowPrices(), 2).schedule
    array([1, 1, 2])
    """
    fine = np.maximum(np.asarray(work, dtype=float), 0.0)
    fine = fine.reshape(len(fine), -1) if fine.size else fine.reshape(0, 1)
    if not fine.size:
        return TargetOptimum(0.0, 0.0, np.empty(0, dtype=np.int64))
    case = _Case(promise, prices, start, max_replicas, least, lead)
    if max_replicas is None:
        return case.solve(fine)
    most = max(1, max_replicas)
    found = reachable(fine, most, promise.windows)
    if not found.full[lead:].any():
        return case.solve(fine)
    if found.longest * min(most, LEVELS) * COARSEST <= STATES:
        return case.solve(fine, longer=found.longest)
    best = case.solve(found.work, late=found.late)
    schedule = best.schedule.copy()
    schedule[lead:][found.full[lead:]] = most
    cost = schedule_cost(schedule, prices, start)
    return TargetOptimum(cost if best.low == best.cost else best.low, cost, schedule)


@dataclass(frozen=True, slots=True)
class _Case:
    """What is the same for every load: the promise, the prices, and which replicas there can be."""

    promise: Promise
    prices: WindowPrices
    start: int
    max_replicas: int | None
    least: int
    lead: int

    def solve(self, fine: Array, longer: float = 0.0, late: float = 0.0) -> TargetOptimum:
        """The cheapest schedule for this work: queues are followed that are ``longer`` than those
        which can be of use, and as much less may be late as ``late`` says is late anyway.
        """
        table = self._table(fine, longer)
        allowed = (1.0 - self.promise.share) * float(table.came.sum())
        return _search(table, allowed - late * table.grid)

    def _table(self, fine: Array, longer: float) -> _Table:
        promise, start, lead, least = self.promise, self.start, self.lead, self.least
        demand, pieces = fine.sum(axis=1), fine.shape[1]
        behind = _behind(demand[:lead], start)
        most = max(least, math.ceil(fine.max() * pieces + behind - 1e-9), start)
        most = most if self.max_replicas is None else max(1, min(most, self.max_replicas))
        block = max(1, math.ceil(most / LEVELS))
        levels = np.unique(np.append(np.arange(min(least, most), most + 1, block), most))
        room = _highest(demand, math.ceil(promise.windows) + 1, 0) * (promise.windows + 1.0) + 1.0
        room[: 3 * lead] += behind
        room += longer
        grid = int(max(COARSEST, min(GRID, STATES / (len(levels) * room.max()))))
        grid = pieces * math.ceil(grid / pieces)  # what a replica does in a part is whole
        came = np.diff(np.round(np.concatenate([[0.0], np.cumsum(fine)]) * grid)).astype(np.int64)
        near = _near(fine.max(axis=1) * pieces, promise, self.prices, float(start))
        near[: None if longer else 3 * lead] = most
        tops = np.minimum(np.searchsorted(levels, np.ceil(near - 1e-9)) + 2, len(levels))
        tops[:lead] = max(1, np.searchsorted(levels, start, side="right"))
        return _Table(
            came.reshape(fine.shape),
            levels.astype(np.int64),
            grid,
            promise.windows,
            self.prices,
            float(start),
            tops,
            (room * grid).astype(np.int64) + 2,
        )


def _behind(work: Array, replicas: int) -> float:
    """The longest queue, in replica-windows, while these replicas serve that work."""
    longest = waiting = 0.0
    for came in work:
        waiting = max(0.0, waiting + came - replicas)
        longest = max(longest, waiting)
    return longest


def _highest(values: Array, before: int, after: int) -> Array:
    """The highest value from so many windows before each to so many after it."""
    padded = np.concatenate([np.zeros(before), values, np.zeros(after)])
    seen = np.lib.stride_tricks.sliding_window_view(padded, before + after + 1)
    return np.asarray(seen.max(axis=1))


def _near(demand: Array, promise: Promise, prices: WindowPrices, start: float) -> Array:
    """Replicas that can be of use in each window: an idle one that waits longer than it costs to
    stop and start it is never part of a cheapest schedule.
    """
    change = prices.up + prices.down + prices.route
    keep = change / prices.replica_window if prices.replica_window > 0 else math.inf
    reach = int(min(len(demand), math.ceil(keep) + math.ceil(promise.windows) + 1))
    near = _highest(demand, reach, reach)
    near[: reach + 1] = np.maximum(near[: reach + 1], start)
    return near


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The problem on its grid. ``tops`` and ``rooms`` are how many levels and backlogs are followed
    in each window; work beyond is forgotten, which can only lower the bound.
    """

    came: Any
    levels: Any
    grid: int
    delay: float
    prices: WindowPrices
    start: float
    tops: Any
    rooms: Any

    def solve(self, price: float, trace: bool = False) -> tuple[float, float, Schedule]:
        """Least ``W + price * late``, the late work of that schedule, and with ``trace`` the
        schedule.
        """
        p = self.prices
        money = np.array([p.replica_window, p.up, p.down, p.route, price, self.start])
        delay = self.delay * self.came.shape[1]
        due, slope = deadlines(self.came.astype(float).ravel(), delay)
        total, late, path = _solve(
            self.came,
            self.levels * self.grid,
            self.levels.astype(float),
            due,
            slope,
            delay - math.floor(delay),
            money,
            self.tops,
            self.rooms,
            trace,
        )
        return total, late, self.levels[path]


def _search(table: _Table, allowed: float) -> TargetOptimum:
    """The best price of late work by bisection on its logarithm: the bound is concave in it."""
    p = table.prices
    cheap = p.replica_window * 1e-4 + 1e-12
    high = (p.replica_window + p.up + p.down + p.route) * 1e3 + 1e-9
    low, late, _ = table.solve(0.0)
    if late <= allowed:
        high = 0.0
    else:
        total, late, _ = table.solve(high)
        if late <= allowed:
            low = max(low, total - high * allowed)
            for _ in range(ROUNDS):
                price = math.sqrt(cheap * high)
                total, late, _ = table.solve(price)
                low = max(low, total - price * allowed)
                cheap, high = (cheap, price) if late <= allowed else (price, high)
    _, late, schedule = table.solve(high, trace=True)
    cost = schedule_cost(schedule, p, int(table.start))
    if (
        late > allowed
    ):  # even all replicas are late: the schedule that is late least is all there is
        low = cost
    return TargetOptimum(min(low, cost), cost, schedule)


@inner
def _moves(table: Any, levels: Any, money: Any, upto: Any, moved: Any, origin: Any) -> None:
    """Cheapest way to every level by a change of replicas, for every backlog: running minima from
    below (starts) and from above (stops). ``upto`` is how many levels and backlogs there are before
    and after the change.
    """
    for b in range(upto[1]):
        low, low_at = np.inf, 0
        for n in range(max(upto[0], upto[2])):
            stay = table[n, b] if n < upto[0] else np.inf
            if n < upto[2]:
                moved[n, b], origin[n, b] = stay, n
                risen = low + money[1] * levels[n] + money[3]
                if risen < stay:
                    moved[n, b], origin[n, b] = risen, low_at
            value = stay - money[1] * levels[n]
            if value < low:
                low, low_at = value, n
        low, low_at = np.inf, 0
        for n in range(upto[0] - 1, -1, -1):
            if n < upto[2]:
                fallen = low - money[2] * levels[n] + money[3]
                if fallen < moved[n, b]:
                    moved[n, b], origin[n, b] = fallen, low_at
            value = table[n, b] + money[2] * levels[n]
            if value < low:
                low, low_at = value, n


@inner
def _serve(
    t: int,
    spans: Any,
    came: Any,
    capacity: Any,
    levels: Any,
    due: Any,
    slope: Any,
    part: float,
    money: Any,
    moved: Any,
    origin: Any,
    lates: Any,
    after: Any,
    lates_after: Any,
    from_level: Any,
    from_backlog: Any,
) -> None:
    """One window from every state: what it costs, what becomes late, what is left waiting."""
    top, held, room, at = spans
    pieces = came.shape[1]
    after[:top, :room] = np.inf
    for n in range(top):
        each = capacity[n] // pieces
        for b in range(held):
            if moved[n, b] == np.inf:
                continue
            late, left = 0.0, b
            for i in range(pieces):
                j = t * pieces + i
                late += late_work(due[j], slope[j], part, float(left), float(each))
                left = max(0, left + came[t, i] - each)
            total = moved[n, b] + money[0] * levels[n] + money[4] * late
            left = min(left, room - 1)
            if total < after[n, left]:
                after[n, left] = total
                lates_after[n, left] = late + lates[origin[n, b], b]
                from_level[at, n, left] = origin[n, b]
                from_backlog[at, n, left] = b


@entry
def _solve(
    came: Any,
    capacity: Any,
    levels: Any,
    due: Any,
    slope: Any,
    part: float,
    money: Any,
    tops: Any,
    rooms: Any,
    trace: bool,
) -> Any:
    """The dynamic programming, forward: least total, its late work and, with ``trace``, its way."""
    windows, count, room = came.shape[0], levels.size, rooms.max()
    table, lates = np.full((count, room), np.inf), np.zeros((count, room))
    after, lates_after = np.full((count, room), np.inf), np.zeros((count, room))
    moved, origin = np.full((count, room), np.inf), np.zeros((count, room), dtype=np.int16)
    kept = windows if trace else 1
    from_level = np.zeros((kept, count, room), dtype=np.int16)
    from_backlog = np.zeros((kept, count, room), dtype=np.int16)
    upto = np.zeros(3, dtype=np.int64)
    for n in range(tops[0]):
        step = levels[n] - money[5]
        moved[n, 0] = max(money[1] * step, -money[2] * step) + money[3] * (step != 0)
        origin[n, 0] = n
    held = 1
    for t in range(windows):
        if t:
            upto[0], upto[1], upto[2] = tops[t - 1], held, tops[t]
            _moves(table, levels, money, upto, moved, origin)
        spans = (tops[t], held, rooms[t], t if trace else 0)
        _serve(
            t, spans, came, capacity, levels, due, slope, part, money, moved, origin, lates,
            after, lates_after, from_level, from_backlog,
        )  # fmt: skip
        held = rooms[t]
        table, after = after, table
        lates, lates_after = lates_after, lates
    best = int(np.argmin(table[: tops[windows - 1], :held]))
    level, backlog = best // held, best % held
    total, late = table[level, backlog], lates[level, backlog]
    path = np.zeros(windows, dtype=np.int64)
    for t in range(windows - 1, -1 if trace else windows - 1, -1):
        path[t] = level
        level, backlog = from_level[t, level, backlog], from_backlog[t, level, backlog]
    return total, late, path
