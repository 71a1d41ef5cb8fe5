"""Which rule would have kept the promise at the least cost? Rules replayed on the load as it came.

A rule asks for ``margin`` times an average of the load (or a forecast of it, or the higher of a
quick average and the usual load), never for less than it asked for in the ``hold`` windows before:
none, so that it gives back as soon as it can, or the lead time and more. The replay follows one
queue as a fluid: what is asked for works ``lead`` windows later unless less is asked for meanwhile,
work is served in order and is late when it is not done in time, whatever replicas there were when
it came, and a backlog that is due is asked for as the planner does. Work beyond the late share that
is allowed costs ``late_price`` times as much as doing it.

Rules whose costs differ little are not told apart by what was seen: all of them decide, each by how
little more than the least it would have cost, and the more was seen, the fewer count. Their mean is
that of the roots, squared: after a fall to a tenth, a rule that still holds the old level asks for
ten times as much as the others, and would decide alone with little weight. Rules that hold nothing
and rules that hold for the lead time are not mixed: whatever falls calls off what is on its way, so
that the better kind decides.

Pure arrays; work is in replicas that are busy. It knows nothing of topologies and targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foretide.jit import entry, inner
from foretide.model import Array
from foretide.plan.fluid import deadlines, late_work
from foretide.plan.promise.stairs import Stairs

SPEEDS = np.array([1.0, 0.6, 0.35, 0.2, 0.1, 0.05, 0.02, 0.01])
TRENDS = np.array([[0, 2], [1, 3], [2, 4]])
DAMPING = 0.9
USUAL = np.array([0.01, 0.0025])
ABOVE = (0.0, 1.0)
"""The usual load is an average at these speeds plus so many standard deviations: many loads come
back after a low, and what is given back then is missing a lead time later.
"""
QUICK = (0, 2)
"""Places in SPEEDS of the averages that are not followed below the usual load."""
MARGINS = np.array([1.0, 1.05, 1.1, 1.16, 1.22, 1.3, 1.4, 1.5, 1.65, 1.8, 2.0, 2.3, 2.6, 3.0])
"""Never less than the load: the replay is a fluid and knows no chance, by which a queue at full
utilization grows.
"""
HOLD_S = (0.0, 20.0, 60.0, 120.0)
"""How long a rule holds what it asked for, beyond the lead time."""
LATE_PRICE = 18.0
"""Price of late work beyond what is allowed, in multiples of what doing it costs: finite, so that a
promise out of reach is not bought at any cost.
"""
DRAINED = 1.5
"""The most that a replayed rule asks for while a queue drains, over the highest margin on the
highest load.
"""
HALF_LIFE, HALF_LIFE_LEADS = 1_000.0, 300.0
"""Windows, and lead times, after which what came counts half; the longer of both. With an even
memory of hours a load that grows restless breaks its promise until it makes up a large part of it.
"""
UNSURE, SURE = 0.12, 30.0
"""The relative cost beyond the least at which a rule counts 1/e as much as the best: with nothing
seen, and the lead times seen after which it is half of that.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a replay needs to know: windows until capacity works and that the planner lets events
    wait, the share of the work that may be late, replica-windows that a start or a stop costs, and
    how the planner drains a queue: what is beyond ``usual`` times the delay within ``drain``
    windows. Work is late after ``limit`` windows (None: after the delay). Operators have these
    ``shares`` of the busiest one's work, where their replicas are rounded together
    (``promise.stairs``; None: one operator alone). Late work beyond what is allowed costs
    ``late_price`` times as much as doing it.
    """

    lead: int
    delay: float
    allowed: float
    change: float
    usual: float = 0.5
    drain: float = 1.5
    limit: float | None = None
    shares: Array | None = None
    late_price: float = LATE_PRICE

    @property
    def late_after(self) -> float:
        return self.delay if self.limit is None else self.limit

    @property
    def numbers(self) -> Array:
        return np.array([self.delay, self.change, self.usual, self.drain, self.late_after])


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """Rules that decide together. ``weights`` has a row per average and a column per hold, in
    windows, summed over the margins: how much that rule counts times the root of its margin.

    ``kept`` is the share of the work that those rules did in time. ``frontier`` holds the rules
    that no other one beats in both: shares done in time, falling, and what they cost, in replicas
    for each busy one.
    """

    weights: Array
    holds: tuple[int, ...]
    kept: float = 1.0
    frontier: tuple[Array, Array] = (np.empty(0), np.empty(0))

    def rate(self, rows: Array) -> float:
        """What the rules ask for now: the squared mean of the roots, by how much they count.

        >>> half = Rules(np.array([[0.5, 0.5]]), holds=(0, 2))
        >>> half.rate(np.array([[1.0, 9.0, 4.0, 4.0]]))
        6.25
        """
        held = [rows[:, -(hold + 1) :].max(axis=1) for hold in self.holds]
        return float((self.weights * np.sqrt(held).T).sum() ** 2)

    def cost(self, share: float) -> float | None:
        """The least that a rule cost which did that share in time; None where none did.

        >>> rules = Rules(np.empty(0), (), 0.99, (np.array([0.99, 0.9]), np.array([1.5, 1.2])))
        >>> rules.cost(0.95), rules.cost(0.9), rules.cost(0.999)
        (1.5, 1.2, None)
        """
        shares, costs = self.frontier
        enough = int((shares >= share - 1e-9).sum())
        return float(costs[enough - 1]) if enough else None


def averages(load: Array, lead: int, own: Array | None = None) -> Array:
    """Fading averages of the load at eight speeds, three of them with a damped trend to the window
    in which capacity asked for then works, quick ones that do not fall below the usual load, and
    ``own`` forecasts of that window where there are any (NaN: the load stands in): one row each,
    every column from the windows up to it alone.

    >>> averages(np.array([2.0, 4.0]), lead=0)[:, -1].round(2).tolist()[:3]
    [4.0, 3.43, 3.21]
    """
    values = np.asarray(load, dtype=float)
    faded = _faded(values, SPEEDS)
    lags = (1 - SPEEDS) / SPEEDS
    reach = DAMPING * (1 - DAMPING ** (lead + 1)) / (1 - DAMPING)
    trends = [
        np.maximum(faded[i] + (faded[i] - faded[j]) / (lags[j] - lags[i]) * reach, 0.0)
        for i, j in TRENDS
    ]
    usual = _faded(values, USUAL)
    spread = np.sqrt(np.maximum(_faded(values * values, USUAL) - usual * usual, 0.0))
    floors = [np.maximum(faded[i], usual + k * spread) for i in QUICK for k in ABOVE]
    if own is None:
        return np.vstack([faded, trends, *floors])
    return np.vstack([faded, trends, *floors, np.where(np.isfinite(own), own, values)])


def rehearse(work: Array, rows: Array, setting: Setting, window_s: float) -> Rules:
    """The rules of least cost on ``work``, which ``rows`` are averages of.

    # a load that stays needs little margin, whatever the lead time
    >>> flat = np.full(600, 7.5)
    >>> rows = averages(flat, 12)
    >>> rehearse(flat, rows, Setting(12, 0.8, 0.01, 3.75), 5.0).rate(rows) < 8.0
    True
    """
    holds = holds_of(setting.lead, window_s)
    falls_due = deadlines(work, setting.late_after)
    steps = _steps(work, setting)
    weight = weights(len(work), setting.lead)
    paid, late = _outcomes(
        work, rows, holds, MARGINS, setting.lead, setting.numbers, steps, *falls_due, weight
    )
    total = max(float(weight @ work), 1e-12)
    costs = paid + setting.late_price * np.maximum(0.0, late - setting.allowed * total)
    done = 1.0 - late / total
    frontier = _frontier(done, paid / total)
    seen = float(weight.sum()) / (setting.lead + 1)
    unsure = UNSURE * SURE / (SURE + seen)
    counts = np.exp((1.0 - costs / costs.min()) / unsure)
    if setting.lead:
        at_once = counts[:, :1].mean() > counts[:, 1:].mean()
        chosen = slice(0, 1) if at_once else slice(1, None)
        holds, counts, done = holds[chosen], counts[:, chosen], done[:, chosen]
    return Rules(
        counts @ np.sqrt(MARGINS) / counts.sum(),
        tuple(holds.tolist()),
        float((counts * done).sum() / counts.sum()),
        frontier,
    )


def _frontier(done: Array, costs: Array) -> tuple[Array, Array]:
    """The shares done in time, falling, and the costs of the rules that none beats in both."""
    order = np.lexsort((costs.ravel(), -done.ravel()))
    falling = costs.ravel()[order]
    best = np.flatnonzero(falling < np.minimum.accumulate(np.append(np.inf, falling[:-1])))
    return done.ravel()[order][best], falling[best]


def weights(windows: int, lead: int) -> Array:
    """How much each window counts, the last one most.

    >>> weights(1001, lead=0)[[0, -1]].tolist(), weights(3901, lead=12)[[0, -1]].tolist()
    ([0.5, 1.0], [0.5, 1.0])
    """
    half_life = max(HALF_LIFE, HALF_LIFE_LEADS * (lead + 1))
    return np.asarray(0.5 ** (np.arange(windows)[::-1] / half_life))


def holds_of(lead: int, window_s: float) -> Any:
    """Windows for which rules hold what they asked for.

    >>> holds_of(12, 5.0).tolist()
    [0, 12, 16, 24, 36]
    """
    beyond = np.round(np.array(HOLD_S) / window_s).astype(np.int64)
    return np.unique(np.concatenate([[0], lead + beyond]))


def _steps(work: Array, setting: Setting) -> tuple[float, Any, Array, Array]:
    """The capacities that replicas can have, for all that a rule may ask for."""
    top = DRAINED * MARGINS[-1] * float(work.max())
    if setting.shares is None:
        stairs = Stairs.of(np.ones(1), top, near=0.0)
    else:
        stairs = Stairs.of(setting.shares, top)
    return stairs.cell, stairs.place, stairs.capacity, stairs.cost


def replayed(
    work: Array,
    row: Array,
    hold: int,
    margin: float,
    setting: Setting,
    weight: Array | None = None,
) -> tuple[float, float]:
    """Replica-windows that one rule on one average costs, and the share of the work that is late;
    windows count by their weight (None: all the same).

    >>> replayed(np.full(100, 7.5), np.full(100, 7.5), 0, 1.0, Setting(0, 0.8, 0.01, 3.75))
    (800.0, 0.0)
    """
    counts = np.ones(len(work)) if weight is None else weight
    cost, late = _replayed(
        work,
        row,
        hold,
        margin,
        setting.lead,
        setting.numbers,
        _steps(work, setting),
        *deadlines(work, setting.late_after),
        counts,
    )
    return float(cost), float(late / (counts @ work))


@entry
def _faded(values: Any, speeds: Any) -> Any:
    """Fading averages at every window, one row per speed; early ones average what there is."""
    rows = np.empty((speeds.size, values.size))
    for i in range(speeds.size):
        level, weight = values[0], 0.0
        for t in range(values.size):
            weight = (1.0 - speeds[i]) * weight + speeds[i]
            level += speeds[i] / weight * (values[t] - level)
            rows[i, t] = level
    return rows


@inner
def _highest(values: Any, hold: int) -> Any:
    highest = np.empty(values.size)
    for t in range(values.size):
        top = 0.0
        for k in range(max(0, t - hold), t + 1):
            top = max(top, values[k])
        highest[t] = top
    return highest


@inner
def _due(expected: float, queue: float, asked: Any, capacity: Any, lead: int, numbers: Any) -> Any:
    """Replicas for the backlog: with no lead time what is due in the next window; else what drains
    a queue that is long when they work, beside what was asked for already.
    """
    if lead == 0:
        return queue + expected * (1.0 - numbers[0])
    coming, fewest = 0.0, np.inf
    for j in range(lead, 0, -1):
        fewest = min(fewest, capacity[asked[j]])
        coming += fewest
    queue = max(0.0, queue + expected * lead - coming)
    beyond = queue - numbers[2] * numbers[0] * expected
    return expected + beyond / numbers[3] if beyond > 0.0 else 0.0


@inner
def _step(wanted: float, steps: Any) -> Any:
    """The step of the stairs (cell, place, capacity, cost) for busy replicas."""
    return steps[1][min(int(wanted / steps[0] + 1e-9), steps[1].size - 1)]


@inner
def _replay(
    work: Any,
    row: Any,
    held: Any,
    margin: float,
    lead: int,
    numbers: Any,
    steps: Any,
    due: Any,
    slope: Any,
    weight: Any,
) -> Any:
    """Cost and late work of one rule, windows weighted: a request works ``lead`` windows later, a
    lower one at once, but none is lower while a queue is long. Starts with what the first windows
    need, so that a rule is not judged by how it begins.
    """
    capacity, price = steps[2], steps[3]
    first = _step(work[: lead + 1].max(), steps)
    asked = np.full(lead + 1, first)
    queue = late = cost = 0.0
    last, part = first, numbers[4] - np.floor(numbers[4])
    for t in range(work.size):
        step = asked[0]
        for k in range(1, lead + 1):
            step = min(step, asked[k])
        before, queue = queue, max(0.0, queue + work[t] - capacity[step])
        late += weight[t] * late_work(due[t], slope[t], part, before, capacity[step])
        cost += weight[t] * (price[step] + numbers[1] * abs(price[step] - price[last]))
        last = step
        wanted = max(margin * held[t], _due(row[t], queue, asked, capacity, lead, numbers))
        if lead > 0 and queue > numbers[2] * numbers[0] * row[t]:
            wanted = max(wanted, capacity[asked[lead]])
        for k in range(lead):
            asked[k] = asked[k + 1]
        asked[lead] = _step(wanted, steps)
    return cost, late


@entry
def _replayed(
    work: Any,
    row: Any,
    hold: int,
    margin: float,
    lead: int,
    numbers: Any,
    steps: Any,
    due: Any,
    slope: Any,
    weight: Any,
) -> Any:
    held = _highest(row, hold)
    return _replay(work, row, held, margin, lead, numbers, steps, due, slope, weight)


@entry
def _outcomes(
    work: Any,
    rows: Any,
    holds: Any,
    margins: Any,
    lead: int,
    numbers: Any,
    steps: Any,
    due: Any,
    slope: Any,
    weight: Any,
) -> Any:
    """What every rule costs and how much work it does late, by average, hold, margin."""
    costs = np.empty((rows.shape[0], holds.size, margins.size))
    lates = np.empty_like(costs)
    for i in range(rows.shape[0]):
        for j in range(holds.size):
            held = _highest(rows[i], holds[j])
            for k in range(margins.size):
                costs[i, j, k], lates[i, j, k] = _replay(
                    work, rows[i], held, margins[k], lead, numbers, steps, due, slope, weight
                )
    return costs, lates
