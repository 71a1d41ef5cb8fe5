"""The cost of a schedule and the cheapest schedule: the limit that every planner is measured
against.

Pure mathematics on integer arrays; knows nothing of topologies, forecasts or time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from foretide.errors import InvalidRecord, unknown
from foretide.model import Array, Prices, WindowPrices
from foretide.quantities import change_cost, needs

__all__ = ["Schedule", "needs", "optimal_schedule", "priced", "schedule_cost"]

Schedule = npt.NDArray[np.int64]


def priced(prices: Prices | Mapping[str, float] | None) -> Prices:
    """Prices from a record, from a table of a settings file, or the published ones.

    >>> priced({"route": 0.0}).route
    0.0
    """
    if isinstance(prices, Prices):
        return prices
    for name in prices or {}:
        if name not in Prices.__dataclass_fields__:
            raise unknown("price", name, Prices.__dataclass_fields__)
    return Prices(**(prices or {}))


def schedule_cost(
    schedule: Sequence[int] | npt.ArrayLike, prices: WindowPrices, start: int
) -> float:
    """The price W of running ``schedule[t]`` replicas in window t, beginning from ``start``
    (BGElasor, section 4.2).

    ``W = p*sum(n_t) + sum_t [p_up*max(0, n_t - n_{t-1}) + p_down*max(0, n_{t-1} - n_t) +
    p_route*(n_t != n_{t-1})]``.

    # five replica-windows, one start, one re-routing
    >>> schedule_cost([1, 2, 2], WindowPrices(), start=1)
    45100.0
    """
    n = np.asarray(schedule, dtype=float)
    if n.size == 0:
        return 0.0
    change = np.diff(n, prepend=float(start))
    return prices.replica_window * float(n.sum()) + change_cost(change, prices)


def optimal_schedule(
    need: Sequence[int] | npt.ArrayLike,
    prices: WindowPrices,
    start: int,
    max_replicas: int | None = None,
) -> Schedule:
    """The schedule of least ``schedule_cost`` with ``n_t >= need_t``, by dynamic programming (not
    in the paper).

    ``f_t(n) = p*n + min over m of f_{t-1}(m) + change(m, n)``. The cheapest way up to n is a
    running minimum of ``f(m) - p_up*m`` from the left, the cheapest way down one of ``f(m) +
    p_down*m`` from the right: O(T*m) for m levels. Only levels that some window needs, and the
    start, can be best: between two of them W is linear in a level, so one end is as good. With
    ``max_replicas`` a need above it is cut to it. Among equals the lowest level wins.

    # keeping two idle replicas costs 16000, dropping them 20200
    >>> optimal_schedule([1, 3, 1, 3], WindowPrices(), start=1)
    array([1, 3, 3, 3])
    """
    wanted = np.asarray(need, dtype=np.int64)
    if wanted.size == 0:
        return wanted
    if wanted.min() < 0 or start < 0:
        raise InvalidRecord(
            f"replicas cannot be negative: start is {start}, the least need is {wanted.min()}"
        )
    cap = max_replicas if max_replicas is not None else max(int(wanted.max()), start)
    wanted = np.minimum(wanted, cap)
    levels = np.unique(np.append(wanted, min(start, cap)))
    floor = np.searchsorted(levels, wanted)
    reached = _forward(levels.astype(float), floor, prices, float(start))
    return levels[_backward(levels.astype(float), reached, prices)]


def lead_windows(lead_s: float | None, window_s: float) -> int:
    """Windows until what is asked for at a window's start works, the one in which it starts
    working not counted; an unknown lead time counts as none.

    >>> lead_windows(0.0, 5.0), lead_windows(10.0, 5.0), lead_windows(12.0, 5.0)
    (0, 2, 3)
    """
    return 0 if lead_s is None else math.ceil(lead_s / window_s * (1 - 1e-9))


def without_valleys(need: Schedule, windows: int) -> Schedule:
    """The need with every valley of ``windows`` windows or less filled: what a lead time of so many
    windows leaves of it.

    Targets are absolute and new replicas come late, so what is given back now cannot be there
    again before the lead time is over: ``n_t = min over s in [t - L, t] of max need[s .. s + L]``.

    >>> without_valleys(np.array([3, 1, 3, 1, 1, 1, 2]), 2)
    array([3, 3, 3, 1, 1, 1, 2])
    """
    if windows <= 0 or not need.size:
        return need
    width = windows + 1
    low, high = need.min(), np.iinfo(need.dtype).max
    ahead = np.concatenate([np.full(windows, low), need, np.full(windows, low)])
    highest = np.lib.stride_tricks.sliding_window_view(ahead, width).max(axis=1)[windows:]
    before = np.concatenate([np.full(windows, high, dtype=need.dtype), highest])
    closed: Schedule = np.lib.stride_tricks.sliding_window_view(before, width).min(axis=1)
    return closed


def _forward(
    levels: Array, floor: npt.NDArray[np.intp], prices: WindowPrices, start: float
) -> Array:
    """``f_t`` for every window (rows) and level (columns); infinite below the need."""
    up, down, keep = prices.up * levels, prices.down * levels, prices.replica_window * levels
    table = np.empty((len(floor), len(levels)))
    best = np.array([_change(start, n, prices) for n in levels])
    rise, fall = np.empty_like(best), np.empty_like(best)
    for t in range(len(table)):
        row = table[t]
        if t:
            np.subtract(best, up, out=rise)
            np.minimum.accumulate(rise, out=rise)
            rise += up
            np.add(best, down, out=fall)
            np.minimum.accumulate(fall[::-1], out=fall[::-1])
            fall -= down
            np.minimum(rise, fall, out=rise)
            rise += prices.route
            np.minimum(best, rise, out=row)
        else:
            row[:] = best
        row += keep
        row[: floor[t]] = np.inf
        best = row
    return table


def _backward(levels: Array, table: Array, prices: WindowPrices) -> npt.NDArray[np.intp]:
    """The levels that lead to the cheapest end, found from the last window to the first."""
    path = np.empty(len(table), dtype=np.intp)
    path[-1] = np.argmin(table[-1])
    for t in range(len(table) - 2, -1, -1):
        after = path[t + 1]
        step = levels[after] - levels
        change = np.where(step > 0, prices.up * step, -prices.down * step) + prices.route
        change[after] = 0.0
        path[t] = np.argmin(table[t] + change)
    return path


def _change(before: float, after: float, prices: WindowPrices) -> float:
    step = after - before
    if step == 0:
        return 0.0
    return (prices.up * step if step > 0 else -prices.down * step) + prices.route
