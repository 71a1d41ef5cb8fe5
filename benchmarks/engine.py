"""Events per second of the event engine beside simpy and ciw: the same network, one core, one run.

Run: ``python benchmarks/engine.py``. An event counts once per operator that served it; seconds are
CPU seconds. Compilation is not counted: it happens once per installation. Ours and simpy's take
turns three times and the median counts. The run ends with an error below 2 million services/s or
when the three disagree.
"""

from __future__ import annotations

import sys

from _peers import NAMES, in_ciw, in_foretide, in_simpy


def main() -> int:
    turns = [(in_foretide(1_000_000.0), in_simpy(20_000.0)) for _ in range(3)]
    middle = [sorted(each, key=lambda r: r.per_second)[1] for each in zip(*turns, strict=True)]
    runs = {"foretide": middle[0], "simpy": middle[1], "ciw": in_ciw(20_000.0)}
    ours = runs["foretide"]
    print(
        f"{'':10}{'services':>12}{'seconds':>10}{'services/s':>14}{'times':>8}   mean seconds at "
        + " ".join(f"{n:>6}" for n in NAMES)
    )
    for name, r in runs.items():
        times = ours.per_second / r.per_second
        means = " ".join(f"{r.sojourn_s[n]:6.3f}" for n in NAMES)
        print(
            f"{name:10}{r.services:12,.0f}{r.took_s:10.2f}{r.per_second:14,.0f}{times:8.0f}   "
            f"{'':16}{means}"
        )
    apart = max(abs(r.sojourn_s[n] / ours.sojourn_s[n] - 1) for r in runs.values() for n in NAMES)
    print(f"largest difference of a mean: {apart:.1%}")
    print(f"against the goal of 2,000,000 services/s: {ours.per_second / 2e6:.1f} times; ", end="")
    print(
        "against the goal of 100 times simpy: "
        f"{ours.per_second / runs['simpy'].per_second / 100:.2f} times"
    )
    return 0 if ours.per_second >= 2e6 and apart < 0.05 else 1


if __name__ == "__main__":
    sys.exit(main())
