"""Loads that repeat by the clock: what it is worth that foretide sees it.

The chain and the settings of ``frontier.py``, rows of 5 s, in operation for 1,000 windows, the last
600 count. Loads are made here: bursts by the clock, also with jitter, with heights by chance, short
and rare ones and two kinds at once; pauses, waves, squares, a sawtooth. The peer in the same run is
the same system that looks for no season.

    python benchmarks/repeating.py
    python benchmarks/repeating.py --loads cron-5-min,squares --leads 60 --json rows.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from frontier import BUSY, GOALS, SERVICE_S, WINDOW_S, Row, measure

from foretide.load import Load
from foretide.model import Array
from foretide.plan.promise import experience

WARM_UP, COUNTED = 1_000, 600
AT = np.arange(WARM_UP + COUNTED)
COUNTS = 100.0
"""Events per window at rate 1, which are left to chance: one tenth of noise."""


def every(windows: int, width: int, height: float, rest: float = 1.0) -> Array:
    """Bursts of so many windows."""
    return np.where(windows - width <= AT % windows, height, rest)


def jittered(random: np.random.Generator) -> Array:
    """Bursts that begin up to two windows sooner or later."""
    rates = np.ones(len(AT))
    for begin in np.arange(50, len(AT) - 60, 60) + random.integers(-2, 3, len(AT[50:-60:60])):
        rates[begin : begin + 3] = 5.0
    return rates


def uneven(random: np.random.Generator) -> Array:
    """Bursts of one to eight times the load between them."""
    heights = random.uniform(1.0, 8.0, len(AT) // 60 + 1)
    return np.where(every(60, 3, 1.0, 0.0) > 0, heights[AT // 60], 1.0)


def wave(windows: int) -> Array:
    return np.asarray(1.0 + 0.7 * np.sin(2 * np.pi * AT / windows))


LOADS: dict[str, Callable[[np.random.Generator], Array]] = {
    "cron-5-min": lambda _: every(60, 3, 5.0),
    "cron-30-min": lambda _: every(360, 12, 6.0),
    "cron-jitter": jittered,
    "cron-uneven": uneven,
    "two-crons": lambda _: every(60, 3, 4.0, 0.0) + every(84, 4, 3.0, 0.0) + 1.0,
    "short-10-min": lambda _: every(120, 1, 9.0),
    "short-30-min": lambda _: every(360, 2, 11.0),
    "every-2-min": lambda _: every(24, 2, 4.0),
    "pauses": lambda _: every(300, 20, 0.0),
    "starts": lambda _: every(300, 20, 1.0, 0.05),
    "on-off": lambda _: every(80, 40, 1.0, 0.0),
    "wave-10-min": lambda _: wave(120),
    "wave-noisy": lambda random: wave(120) * random.lognormal(0.0, 0.2, len(AT)),
    "squares": lambda _: every(240, 120, 3.0),
    "squares-growing": lambda _: every(240, 120, 3.0) * (1.0 + AT / len(AT)),
    "sawtooth": lambda _: 1.0 + 2.0 * (AT % 150) / 150,
    "wave-1-h": lambda _: wave(720),
}


def made(name: str) -> Load:
    random = np.random.default_rng(sum(map(ord, name)))
    counts = random.poisson(COUNTS * LOADS[name](random)).astype(float)
    mean = counts[-COUNTED:].mean()
    return Load(name, counts / mean * BUSY / SERVICE_S["work"] * WINDOW_S, WINDOW_S)


def table(rows: list[tuple[Row, Row]]) -> str:
    """Share at cost without seasons and with them, and in how many cases both goals are kept."""
    lines = ["| load | lead s | without | with |", "|---|---|---|---|"]
    kept = [0, 0]
    for pair in rows:
        least, most = GOALS[float(str(pair[0]["lead_s"]))][1]
        cells = []
        for i, row in enumerate(pair):
            share, cost = float(str(row["share"])), float(str(row["cost"]))
            kept[i] += share >= least and cost <= most
            cells.append(f"{100 * share:.1f} % at {cost:.2f}")
        lines.append(f"| {pair[0]['load']} | {pair[0]['lead_s']:g} | {' | '.join(cells)} |")
    for lead_s in dict.fromkeys(pair[0]["lead_s"] for pair in rows):
        of = [pair for pair in rows if pair[0]["lead_s"] == lead_s]
        cells = [
            f"{100 * np.mean([float(str(p[i]['share'])) for p in of]):.1f} % at "
            f"{np.mean([float(str(p[i]['cost'])) for p in of]):.2f}"
            for i in (0, 1)
        ]
        lines.append(f"| mean | {lead_s:g} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"Goals kept: {kept[0]} and {kept[1]} of {len(rows)}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--loads", default=",".join(LOADS))
    parser.add_argument("--leads", default="10,60", help="seconds")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    asked = parser.parse_args()
    rows: list[tuple[Row, Row]] = []
    for name in asked.loads.split(","):
        for lead_s in map(float, asked.leads.split(",")):
            load, which, leads_s = made(name), ("foretide",), (lead_s,)
            with mock.patch.object(experience, "repeating", return_value=None):
                without = measure(load, which, leads_s, "fluid", COUNTED)[0]
            rows.append((without, measure(load, which, leads_s, "fluid", COUNTED)[0]))
        if asked.json:
            asked.json.write_text(json.dumps(rows, indent=0))
    print(table(rows))


if __name__ == "__main__":
    main()
