"""What any system must pay on a load whose rows are independent, even one that knows their
distribution.

Nobody can know the next row of such a load. A row is seen when its first window is over, and what
is asked for then works a lead time later; until that moment capacity does not depend on the row.
The cheapest such policy is a Markov decision process: its state are the replicas at the start of a
row, its choices the replicas after the blind part and those for the next row, its price that of
replicas, of changes and of late work. The average cost less the price of what may be late is a
lower bound at every price; the highest one is printed, over the least cost of ``target_optimum``,
which knows the load. It is kind to the system: queues vanish with the blind part.

    python benchmarks/blind_limit.py ../shared/traces --loads elb

Rows that depend on those before them can be served for less: the correlation is printed too.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from frontier import BUSY, GOALS, LEADS_S, SMOOTH, WINDOW_S, trace
from hindsight import CHANGE, least

from foretide.model import Array

SWEEPS = 400


def late_work(rates: Array, replicas: Array, windows: float) -> Array:
    """Work of a row (rows) that waits longer than a window while so many replicas (columns) serve
    it from an empty queue: all that comes after the queue is as long as a window.

    >>> late_work(np.array([4.0]), np.array([2.0, 4.0]), 3.0)
    array([[8., 0.]])
    """
    over = np.maximum(rates[:, None] - replicas[None], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        until = np.where(over > 0, replicas[None] / over, np.inf)
    return np.where(over > 0, rates[:, None] * np.maximum(0.0, windows - until), 0.0)


def limit(rates: Array, windows: int, lead: int, share: float, change: float = CHANGE) -> float:
    """Replica-windows per row that a share of the work in time costs at least, for rows of so many
    windows drawn independently from ``rates``.

    >>> round(limit(np.array([4.0]), windows=12, lead=12, share=1.0), 3)  # it needs what it is
    48.0
    """
    blind = min(windows, lead + 1)
    rest, levels = windows - blind, np.arange(np.ceil(rates.max()) + 1)
    blind_late = late_work(rates, levels, blind).mean(axis=0)
    rest_late = late_work(rates, levels, rest)
    moves = change * np.abs(levels[:, None] - levels)
    allowed = (1.0 - share) * windows * float(rates.mean())

    def cost(price: float) -> float:
        """The least mean cost of a row at a price of late work, by relative value iteration."""
        value = grown = np.zeros(len(levels))
        for _ in range(SWEEPS):
            left = (moves + value).min(axis=1)
            if rest:
                served = rest * levels + price * rest_late + left
                left = np.array([(move + served).min(axis=1).mean() for move in moves])
            grown = blind * levels + price * blind_late + left - value
            if np.ptp(grown) < 1e-4 * grown.mean():
                break
            value = grown + value - (grown + value).min()
        return float(grown.min())

    return float(max(cost(price) - price * allowed for price in np.geomspace(0.3, 100.0, 25)))


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
        rates = load.counts / load.counts.mean() * BUSY
        windows = round(load.interval_s / WINDOW_S)
        work = np.repeat(rates, windows)
        best = least(work) / len(rates)
        near = float(np.corrcoef(rates[1:], rates[:-1])[0, 1])
        for lead_s in LEADS_S[1:]:
            share, most = GOALS[lead_s][0 if name in SMOOTH else 1]
            ratio = limit(rates, windows, round(lead_s / WINDOW_S), share) / best
            print(
                f"| {name} | {lead_s:g} | {share:.1%} at {most:g} | {ratio:.2f} | "
                f"{'out of reach' if ratio > most else 'not excluded'} | {near:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
