"""How long every system takes on a load of 20,000 windows (two weeks of minutes): run as
``python benchmarks/long_load.py [SECONDS]``.

A system that is not done after SECONDS (30) is stopped; its time is then its pace so far. The ratio
is against the fastest system in the same run.
"""

from __future__ import annotations

import sys
import time

from foretide.cli.scenario import Options, build
from foretide.errors import ForetideError
from foretide.model import Prices
from foretide.sim import compare
from foretide.systems import SYSTEMS, System

WINDOWS, WINDOW_S = 20_000, 60.0
LOAD = "periodic:days=840"


class Enough(Exception):
    """The time is over."""


def taken_s(scenario: compare.Scenario, system: System, limit_s: float) -> tuple[float, bool]:
    """Seconds for the whole load, and whether it came to its end."""
    began, done = time.perf_counter(), 0

    def report(name: str, windows: int, total: int) -> None:
        nonlocal done
        done = windows
        if time.perf_counter() - began > limit_s:
            raise Enough

    try:
        compare.simulate(scenario, system, report)
    except Enough:
        return (time.perf_counter() - began) * scenario.windows / done, False
    return time.perf_counter() - began, True


def main() -> None:
    limit_s = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    options = Options("twitter-linear", LOAD, window_s=WINDOW_S, engine="fluid")
    scenario = build(options, Prices())
    print(f"{scenario.windows:,} windows of {WINDOW_S:g} s on {scenario.app.name}, fluid engine")
    taken: dict[str, tuple[float, bool]] = {}
    for system in SYSTEMS.values():
        try:
            taken[system.name] = taken_s(scenario, system, limit_s)
        except ForetideError as error:
            print(f"{system.name:20} left out: {error}")
            continue
        seconds, whole = taken[system.name]
        print(f"{system.name:20} {seconds:8.1f} s{'' if whole else ' (by its pace so far)'}")
    least = min(seconds for seconds, _ in taken.values())
    worst = max(taken, key=lambda name: taken[name][0])
    print(f"slowest against fastest: {worst}, {taken[worst][0] / least:.0f} times")
    slow = [name for name, (seconds, _) in taken.items() if seconds > limit_s]
    print(f"over {limit_s:g} s: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
