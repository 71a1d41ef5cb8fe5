"""What a rule could reach that is chosen with the whole load known, on the loads of frontier.py.

Per load and lead time: the cheapest of all rules that ``foretide`` replays (an average of the load,
a margin, how long it is held) and of all constant numbers of replicas, among those that keep the
share of the goal; one operator as a fluid, costs over the least of ``target_optimum``. No system
that has to learn its rule while the load comes can be expected to do better; a goal that is missed
here is out of its reach.

    python benchmarks/hindsight.py ../shared/traces
    python benchmarks/hindsight.py ../shared/traces --cuts   many starts of the loads of short rows

With ``--cuts`` each load of rows up to five seconds begins at eight places, and the rule is chosen
once for all of them, once per load, or for every one: how many keep both goals.
"""

from __future__ import annotations

import sys
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from frontier import BUSY, GOALS, LEADS_S, OTHER, ROWS, SMOOTH, WINDOW_S, trace

from foretide.model import Array, Prices
from foretide.plan.promise.rehearsal import MARGINS, Setting, averages, holds_of, replayed
from foretide.plan.target_optimum import Promise, target_optimum

WIDE = np.array([0.8, 0.85, 0.9, 0.95, *MARGINS, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0])
PRICES = Prices()
CHANGE = 0.5 * (PRICES.up + PRICES.down) / (PRICES.replica_second * WINDOW_S)
"""Replica-windows that a start or a stop costs."""
SKIPPED = (0, 100, 250, 400, 600, 800, 1300, 2000)
"""Rows at the end of a load that are left out, for several starts of it."""


def per_window(folder: Path, name: str, skip: int = 0) -> Array:
    """Busy replicas of one operator in every window."""
    load = trace(folder, name, skip=skip)
    rates = np.repeat(load.counts / load.interval_s, max(1, round(load.interval_s)))
    windows = len(rates) // int(WINDOW_S)
    work = rates[: windows * int(WINDOW_S)].reshape(windows, -1).mean(axis=1)
    return np.asarray(work / load.counts.mean() * load.interval_s * BUSY)


def best(work: Array, lead: int, late: float) -> tuple[float, float, str]:
    """The least cost in replica-windows that is late with no more than that share of the work, its
    share, and how.
    """
    rows, found = averages(work, lead), (np.inf, 0.0, "none")
    setting = Setting(lead, 1.0, late, CHANGE)
    for row, hold, margin in product(range(len(rows)), holds_of(lead, WINDOW_S), WIDE):
        cost, missed = replayed(work, rows[row], int(hold), float(margin), setting)
        if missed <= late and cost < found[0]:
            found = cost, 1 - missed, f"{margin:g} x average {row}, held {hold * WINDOW_S:g} s"
    for replicas in range(1, int(1.3 * work.max()) + 2):
        cost, missed = float(replicas * len(work)), late_with(work, replicas)
        if missed <= late and cost < found[0]:
            found = cost, 1 - missed, f"{replicas} replicas"
    return found


def late_with(work: Array, replicas: int) -> float:
    """The share of the work that waits longer than a window for a constant number of replicas."""
    queue = late = 0.0
    for came in work:
        before, queue = queue, max(0.0, queue + came - replicas)
        high, low = max(before, queue), min(before, queue)
        if high > replicas:
            late += came * (1.0 if low >= replicas else (high - replicas) / (high - low))
    return late / float(work.sum())


def kept_by_rule(work: Array, lead: int, share: float, most: float) -> Array:
    """Whether each rule keeps both goals on this work."""
    rows, setting = averages(work, lead), Setting(lead, 1.0, 0.01, CHANGE)
    kept = []
    for row, hold, margin in product(rows, holds_of(lead, WINDOW_S), WIDE):
        cost, late = replayed(work, row, int(hold), float(margin), setting)
        kept.append(1 - late >= share and cost <= most * least(work))
    return np.array(kept)


@cache
def _least(work: tuple[float, ...]) -> float:
    prices, start = PRICES.per_window(WINDOW_S), max(1, int(np.ceil(work[0])))
    found = target_optimum(np.array(work), Promise(1.0, 0.99), prices, start).low
    return found / (PRICES.replica_second * WINDOW_S)


def least(work: Array) -> float:
    """The least cost that keeps the promise on this work, in replica-windows."""
    return _least(tuple(work.tolist()))


def starts(folder: Path) -> None:
    """How many starts of the loads of short rows rules keep that were chosen with hindsight."""
    print("| lead s | starts | one rule for all | one per load | one per start |")
    print("|---|---|---|---|---|")
    whole = {n: trace(folder, n, rows=10**9) for n in SMOOTH | OTHER}
    short = [n for n, load in whole.items() if load.interval_s <= WINDOW_S]
    for lead_s in LEADS_S:
        kept: dict[str, list[Array]] = {}
        for name, skip in product(short, SKIPPED):
            if len(whole[name]) < ROWS + skip:
                continue
            work, goal = per_window(folder, name, skip), GOALS[lead_s][0 if name in SMOOTH else 1]
            kept.setdefault(name, []).append(kept_by_rule(work, round(lead_s / WINDOW_S), *goal))
        every = np.vstack([row for rows in kept.values() for row in rows])
        per_load = sum(int(np.sum(rows, axis=0).max()) for rows in kept.values())
        print(
            f"| {lead_s:g} | {len(every)} | {every.sum(axis=0).max()} | {per_load} | "
            f"{every.any(axis=1).sum()} |",
            flush=True,
        )


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/traces")
    if not folder.is_dir():
        print(f"{folder} is not a folder: the recorded loads are not here, nothing to do")
        return
    if "--cuts" in sys.argv:
        starts(folder)
        return
    print("| load | lead s | share | cost | goal | | how |\n|---|---|---|---|---|---|---|")
    for name, lead_s in product(SMOOTH | OTHER, LEADS_S):
        work = per_window(folder, name)
        share, most = GOALS[lead_s][0 if name in SMOOTH else 1]
        cost, kept, how = best(work, round(lead_s / WINDOW_S), 1 - share)
        ratio = cost / least(work)
        print(
            f"| {name} | {lead_s:g} | {kept:.1%} | {ratio:.2f} | {share:.1%} at {most:g} | "
            f"{'in reach' if ratio <= most else 'out of reach'} | {how} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
