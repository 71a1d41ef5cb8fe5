"""What any system must pay on a load whose rows are independent, even one that knows their
distribution.

Nobody can know the next row of such a load. A row is seen when its first window is over, and what
is asked for then works a lead time later; until that moment capacity does not depend on the row.
The cheapest such policy is a Markov decision process: its state are the replicas at the start of a
row, its choices the replicas of the blind part and of every window after it, where the queue is
known too, its price that of replicas, of changes and of late work (after one window, first in,
first out). The average cost less the price of what may be late is a lower bound at every price;
the highest one is printed, for the three operators of the chain together, each with the whole
delay and the whole share of late work, over the least cost of ``target_optimum``, which knows the
load.

It is kind to the system: queues vanish when a row ends, and the last window's work is never late.
In the blind part replicas do not change; for rows that are seen after three windows every other
order of replicas was tried once, and none was cheaper.

    python benchmarks/blind_limit.py ../shared/traces --loads elb

Rows that depend on those before them can be served for less: the correlation is printed too.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from frontier import BUSY, GOALS, LEADS_S, SERVICE_S, SMOOTH, WINDOW_S, trace
from hindsight import CHANGE, least

from foretide.jit import entry, inner
from foretide.model import Array

SWEEPS = 60
PRICES = np.geomspace(1.0, 60.0, 24)
GRID = 4
"""Parts of a replica-window in which queues are counted, rounded down."""
CATCH_UP = 4
"""The most replicas, over the highest rate: what clears the queue of a blind part in a window."""


@inner
def late_in(rate: float, queue: float, replicas: float) -> float:
    """Work that falls due too early in a window of a row that began more than a window ago: with
    as much more waiting than came in the window before, all of it.
    """
    first, last = queue - rate, queue - replicas
    if first <= 1e-9 and last <= 1e-9:
        return 0.0
    if first > 0.0 and last > 0.0:
        return rate
    return rate * max(first, last) / (max(first, last) - min(first, last))


@entry
def seen(rate: float, windows: int, longest: int, price: float, change: float, then: Any) -> Any:
    """The least cost of the windows of a row that is known, from every number of replicas (rows)
    and every queue, in parts of ``GRID``; ``then`` is what the next row costs.
    """
    levels = then.size
    costs = np.empty((levels, longest))
    for n in range(levels):
        costs[n, :] = then[n]
    chosen = np.empty_like(costs)
    for _ in range(windows):
        for b in range(longest):
            queue = b / GRID
            for n in range(levels):
                left = int(max(0.0, queue + rate - n) * GRID)
                late = price * late_in(rate, queue, n)
                chosen[n, b] = n + late + costs[n, min(left, longest - 1)]
            for n in range(1, levels):
                chosen[n, b] = min(chosen[n, b], chosen[n - 1, b] + change)
            for n in range(levels - 2, -1, -1):
                chosen[n, b] = min(chosen[n, b], chosen[n + 1, b] + change)
        costs, chosen = chosen, costs
    return costs


@entry
def row_costs(rates: Any, windows: int, blind: int, price: float, change: float, then: Any) -> Any:
    """The least mean cost of a row and of what comes after it, from every number of replicas."""
    levels = then.size
    mean = np.zeros(levels)
    for rate in rates:
        known = seen(rate, windows - blind, int(blind * rate * GRID) + 2, price, change, then)
        for n in range(levels):
            queue = max(0.0, rate - n)
            for _ in range(1, blind):
                mean[n] += price * late_in(rate, queue, n) / rates.size
                queue = max(0.0, queue + rate - n)
            mean[n] += known[n, int(queue * GRID)] / rates.size
    least_cost = mean + blind * np.arange(levels)
    for n in range(1, levels):
        least_cost[n] = min(least_cost[n], least_cost[n - 1] + change)
    for n in range(levels - 2, -1, -1):
        least_cost[n] = min(least_cost[n], least_cost[n + 1] + change)
    return least_cost


def limit(rates: Array, windows: int, lead: int, share: float, change: float = CHANGE) -> float:
    """Replica-windows per row that a share of the work in time costs at least, for rows of so many
    windows drawn independently from ``rates``.

    # three of four replicas do for four windows on each side of the row's end: queues vanish there
    >>> round(limit(np.array([4.0]), windows=12, lead=2, share=1.0), 1)
    47.5
    """
    blind = min(windows, lead + 1)
    allowed = (1.0 - share) * windows * float(rates.mean())
    then = np.zeros(CATCH_UP * int(np.ceil(rates.max())) + 1)
    best = 0.0
    for price in PRICES:
        for _ in range(SWEEPS):
            now = row_costs(rates, windows, blind, price, change, then)
            grown, then = now - then, now - now.min()
            if np.ptp(grown) < 1e-3 * grown.mean():
                break
        best = max(best, float(grown.min() - price * allowed))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("traces", type=Path, nargs="?", default=Path("../shared/traces"))
    parser.add_argument("--loads", default="elb")
    parser.add_argument("--rows", type=int, default=200)
    asked = parser.parse_args()
    if not asked.traces.is_dir():
        print(f"{asked.traces} is not a folder: the recorded loads are not here, nothing to do")
        return
    print("| load | lead s | goal | at least | | correlation of rows |\n|---|---|---|---|---|---|")
    for name in asked.loads.split(","):
        load = trace(asked.traces, name, asked.rows)
        counts, windows = load.counts, round(load.interval_s / WINDOW_S)
        operators = [
            counts / counts.mean() * BUSY * service_s / SERVICE_S["work"]
            for service_s in SERVICE_S.values()
        ]
        best = sum(least(np.repeat(rates, windows)) for rates in operators) / len(counts)
        near = float(np.corrcoef(counts[1:], counts[:-1])[0, 1])
        for lead_s in LEADS_S[1:]:
            share, most = GOALS[lead_s][0 if name in SMOOTH else 1]
            lead = round(lead_s / WINDOW_S)
            ratio = sum(limit(rates, windows, lead, share) for rates in operators) / best
            print(
                f"| {name} | {lead_s:g} | {share:.1%} at {most:g} | {ratio:.2f} | "
                f"{'out of reach' if ratio > most else 'not excluded'} | {near:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
