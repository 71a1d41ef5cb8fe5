"""How far a comparison is: bars with a remaining time on a terminal, a line every few seconds in a
pipe; and what it would take, before it starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from foretide.cli.out import labelled
from foretide.errors import ForetideError
from foretide.sim import compare as comparing
from foretide.systems import System

EVERY_S = 5.0
SLOW_S = 30.0
TRIED_WINDOWS, TRIED_S = 100, 1.0
WORTH_TRYING = 3_000
QUICK_WINDOWS = 2_000


@contextmanager
def progress(console: Console | None = None) -> Iterator[comparing.Progress]:
    """What a comparison reports to, on standard error."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield Lines(lambda text: console.print(text, highlight=False, soft_wrap=True))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} windows"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def report(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            label = name if done < total else f"{name}, computing its figures and the optimum"
            bars.update(tasks[name], completed=done, description=label)

        yield report


@dataclass
class Lines:
    """Progress for logs: at most one line every ``EVERY_S`` seconds.

    >>> clock = iter([0.0, 0.0, 6.0, 7.0])
    >>> lines = Lines(print, lambda: next(clock))
    >>> lines("ds2", 10, 100)
    >>> lines("ds2", 50, 100)
    ds2: 50 of 100 windows, about 8 s left
    >>> lines("ds2", 60, 100)
    """

    write: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _first: dict[str, tuple[float, int]] = field(default_factory=dict)
    _said: float = field(init=False)

    def __post_init__(self) -> None:
        self._said = self.clock()

    def __call__(self, name: str, done: int, total: int) -> None:
        now = self.clock()
        began, first = self._first.setdefault(name, (now, done))
        if now - self._said < EVERY_S:
            return
        self._said = now
        rest = ", computing its figures" if done >= total else ""
        if first < done < total:  # the pace is known
            rest = f", about {duration((now - began) * (total - done) / (done - first))} left"
        self.write(f"{name}: {done:,} of {total:,} windows{rest}")


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> duration(6), duration(130), duration(7300)
    ('6 s', '2 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


Marks = list[tuple[int, float]]


class _Enough(Exception):
    """A trial has run long enough to know the pace."""


def estimates(
    scenario: comparing.Scenario,
    systems: Sequence[System],
    clock: Callable[[], float] = time.monotonic,
    new_environment: comparing.NewEnvironment = comparing.simulator,
) -> dict[str, float]:
    """Seconds that each system will take on the whole load, by its pace in the first windows. The
    very first counts once: a system may plan the whole load in it, or compile what it uses.
    """
    begin = scenario.load.first(scenario.window_s)
    with suppress(ForetideError):
        comparing.simulate(replace(scenario, load=begin), systems[0], None, new_environment)
    first = scenario.load.first(TRIED_WINDOWS * scenario.window_s)
    short, taken = replace(scenario, load=first), dict[str, float]()
    for system in systems:
        marks = [(0, clock())]

        def report(name: str, windows: int, total: int, marks: Marks = marks) -> None:
            marks.append((windows, clock()))
            if len(marks) > 2 and marks[-1][1] - marks[1][1] > TRIED_S:
                raise _Enough

        try:
            comparing.simulate(short, system, report, new_environment)
        except _Enough:
            pass
        except ForetideError:
            continue  # the comparison itself says why
        (_, began), (at, ready), (last, ended) = marks[0], marks[1], marks[-1]
        pace = (ended - ready) / max(1, last - at)
        taken[system.name] = ready - began + pace * (scenario.windows - at)
    return taken


def warn_if_slow(
    scenario: comparing.Scenario,
    systems: Sequence[System],
    estimate: Callable[..., dict[str, float]] = estimates,
    fast: bool = False,
) -> None:
    """Say before a long comparison starts which systems will take long, and what is cheaper."""
    if scenario.windows < WORTH_TRYING:
        return
    slow = {n: s for n, s in estimate(scenario, systems).items() if s > SLOW_S}
    if not slow:
        return
    by_time = sorted(slow.items(), key=lambda item: -item[1])
    names = ", ".join(f"{name} {duration(seconds)}" for name, seconds in by_time)
    labelled(
        "warning:",
        "yellow",
        f"{scenario.windows:,} windows will take about: {names}. Cheaper: "
        f"{'' if fast else '--fast (forecasts and trains less often), '}--quick (the last "
        f"{QUICK_WINDOWS:,} windows), a longer --window, or fewer --systems.",
    )
