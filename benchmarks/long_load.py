"""How long every system takes on a load of 20,000 windows (two weeks of minutes), as it is and with
``--fast``: run as ``python benchmarks/long_load.py [SECONDS] [SYSTEM ...]``.

Seconds are processor time, so that other work on the machine does not count. A run that is not done
after SECONDS (30) is stopped; its time is then its pace so far. The ratio is against the fastest
system in the same run.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from foretide.cli.scenario import Options, build
from foretide.errors import ForetideError
from foretide.model import Prices
from foretide.sim import compare
from foretide.sim.fast import fast
from foretide.systems import SYSTEMS, System

WINDOW_S = 60.0
LOAD = "periodic:days=840"


class Enough(Exception):
    """The time is over."""


def taken_s(scenario: compare.Scenario, system: System, limit_s: float) -> tuple[float, bool]:
    """Seconds for the whole load, and whether it came to its end."""
    began, done = time.process_time(), 0

    def report(name: str, windows: int, total: int) -> None:
        nonlocal done
        done = windows
        if time.process_time() - began > limit_s:
            raise Enough

    try:
        compare.simulate(scenario, system, report)
    except Enough:
        return (time.process_time() - began) * scenario.windows / done, False
    return time.process_time() - began, True


def said(seconds: float, whole: bool) -> str:
    return f"{seconds:8.1f} s{'' if whole else ' (by its pace)'}"


def main() -> None:
    limit_s = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    chosen = [SYSTEMS[name] for name in sys.argv[2:]] or list(SYSTEMS.values())
    options = Options("twitter-linear", LOAD, window_s=WINDOW_S, engine="fluid")
    scenario = build(options, Prices())
    print(f"{scenario.windows:,} windows of {WINDOW_S:g} s on {scenario.app.name}, fluid engine")
    begin = replace(scenario, load=scenario.load.first(WINDOW_S))
    compare.simulate(begin, SYSTEMS["static"])  # compiles the simulator
    taken: dict[str, float] = {}
    for system in chosen:
        cheaper, sentence = fast(system, scenario.windows, WINDOW_S)
        try:
            seconds, whole = taken_s(scenario, system, limit_s)
            line = said(seconds, whole)
            if sentence:
                seconds, whole = taken_s(scenario, cheaper, limit_s)
                line += f"; --fast {said(seconds, whole).strip()}"
        except ForetideError as error:
            print(f"{system.name:20} left out: {error}", flush=True)
            continue
        taken[system.name] = seconds
        print(f"{system.name:20} {line}", flush=True)
    least, worst = min(taken.values()), max(taken, key=lambda name: taken[name])
    print(f"slowest against fastest, with --fast: {worst}, {taken[worst] / least:.0f} times")
    slow = [name for name, seconds in taken.items() if seconds > limit_s]
    print(f"over {limit_s:g} s with --fast: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
