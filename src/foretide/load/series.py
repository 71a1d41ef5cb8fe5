"""Loads: how many events come per interval; the papers' shapes by name. Recorded traces are read by
``load.recorded``.

Owns the step from a name or a file to a ``Load``. Topologies are not its concern. The papers
publish pictures more often than numbers: where a shape's parameters are ours, its docstring says
so. Every shape is a function of its parameters and a seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from foretide.errors import InvalidConfig
from foretide.model import Array
from foretide.registry import Part, Registry

if TYPE_CHECKING:
    from foretide.load.recorded import CsvFormat

MOST = 1e15
"""Events in one row: below this a double counts every single one, and a sum of squares does not
overflow.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """Events per interval, oldest first: ``counts[i]`` come between ``i * interval_s`` and ``(i +
    1) * interval_s``. ``started_at`` is when a recorded load began, ``notes`` what was guessed when
    it was read.

    >>> l = Load("two steps", np.array([10.0, 10.0, 40.0, 40.0]), interval_s=1.0)
    >>> l.duration_s, l.rates(), l.rates(window_s=2.0), l.total
    (4.0, array([10., 10., 40., 40.]), array([10., 40.]), 100.0)
    """

    name: str
    counts: Array
    interval_s: float = 1.0
    started_at: float | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=float)
        if counts.ndim != 1 or not counts.size:
            raise InvalidConfig(f"load '{self.name}' has no rows: give at least one count")
        possible = (counts >= 0) & (counts <= MOST)
        if not np.all(possible):
            row = int(np.flatnonzero(~possible)[0])
            raise InvalidConfig(
                f"load '{self.name}', row {row + 1}: count {counts[row]} must be a number from 0 "
                f"to {MOST:g}"
            )
        if not (np.isfinite(self.interval_s) and self.interval_s > 0):
            raise InvalidConfig(
                f"load '{self.name}' has interval {self.interval_s} s: it must be a finite number "
                "> 0"
            )
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    def __len__(self) -> int:
        return int(self.counts.size)

    @property
    def duration_s(self) -> float:
        return len(self) * self.interval_s

    @property
    def batch_s(self) -> float:
        """Seconds between two batches where events come a second at a time: a second, or less so
        that an interval is whole batches.
        """
        return self.interval_s / max(1.0, float(np.ceil(self.interval_s * (1 - 1e-9))))

    @property
    def total(self) -> float:
        """All events."""
        return float(self.counts.sum())

    @property
    def peak(self) -> float:
        """The highest interval, events/s."""
        return float(self.counts.max()) / self.interval_s

    def rates(self, window_s: float | None = None) -> Array:
        """Events/s, per interval or per window; within an interval events come evenly. A last part
        of a window is left out.
        """
        if window_s is None or window_s == self.interval_s:
            return self.counts / self.interval_s
        windows = int(self.duration_s / window_s * (1 + 1e-12))
        known_at = np.arange(len(self) + 1) * self.interval_s
        cumulated = np.concatenate(([0.0], np.cumsum(self.counts)))
        by_window: Array = np.interp(np.arange(windows + 1) * window_s, known_at, cumulated)
        return np.diff(by_window) / window_s

    def before(self, after_s: float, window_s: float) -> Array:
        """Events/s in the windows that end ``after_s`` seconds after the load does, oldest first;
        NaN where nothing was recorded.

        >>> Load("steps", np.array([10.0, 20.0, 30.0, 40.0])).before(after_s=2.0, window_s=2.0)
        array([15., 35., nan])
        """
        known_at = np.arange(-len(self), 1) * self.interval_s
        cumulated = np.concatenate(([0.0], np.cumsum(self.counts)))
        windows = int((self.duration_s + after_s) / window_s * (1 + 1e-12))
        edges = after_s - np.arange(windows, -1, -1) * window_s
        rates = np.diff(np.interp(edges, known_at, cumulated)) / window_s
        return np.asarray(np.where(edges[1:] > 1e-9 * window_s, np.nan, rates))

    def at(self, now: float) -> float:
        """Events/s at an instant of run time; 0 outside the load."""
        i = int(now // self.interval_s)
        return float(self.counts[i]) / self.interval_s if 0 <= i < len(self) else 0.0

    def whole_counts(self) -> Array:
        """Counts as whole events: fractions are carried on, so that no total is ever off by one or
        more.
        """
        return np.diff(np.floor(np.concatenate(([0.0], np.cumsum(self.counts))) + 1e-6))

    def scaled(self, scale: float = 1.0, speed: float | None = None) -> Load:
        """Counts times ``scale``, replayed at ``speed`` rows per second of run time (None: as it
        is).
        """
        if not (np.isfinite(scale) and scale > 0):
            raise InvalidConfig(f"--scale {scale}: the factor on the counts must be > 0")
        if speed is not None and not (np.isfinite(speed) and speed > 0):
            raise InvalidConfig(f"--speed {speed}: rows per second of run time must be > 0")
        return replace(
            self,
            counts=self.counts * scale,
            interval_s=self.interval_s if speed is None else 1.0 / speed,
            started_at=self.started_at if speed is None else None,
        )

    def last(self, seconds: float) -> Load:
        """The end of the load, at least one interval.

        >>> Load("steps", np.array([1.0, 2.0, 3.0]), 60.0, started_at=0.0).last(100).counts
        array([2., 3.])
        """
        kept = min(len(self), max(1, int(np.ceil(seconds / self.interval_s - 1e-9))))
        left_out_s = (len(self) - kept) * self.interval_s
        began = None if self.started_at is None else self.started_at + left_out_s
        return replace(self, counts=self.counts[len(self) - kept :], started_at=began)

    def first(self, seconds: float) -> Load:
        """The beginning of the load, at least one interval."""
        return replace(
            self, counts=self.counts[: max(1, int(np.ceil(seconds / self.interval_s - 1e-9)))]
        )


LOADS: Registry[Load] = Registry(
    "load",
    (
        Part(
            "stable", "foretide.load.shapes:stable", "level with small noise", "BGElasor, figure 3"
        ),
        Part(
            "periodic",
            "foretide.load.shapes:periodic",
            "a daily wave, the same every day",
            "BGElasor, figure 3",
        ),
        Part(
            "fluctuating",
            "foretide.load.shapes:fluctuating",
            "growth with isolated bursts",
            "BGElasor, figure 3",
        ),
        Part(
            "progressive",
            "foretide.load.shapes:progressive",
            "steps 4 to 200/s and back",
            "DABS-Storm, figure 11a",
        ),
        Part(
            "erratic",
            "foretide.load.shapes:erratic",
            "steps that jump between 4 and 200/s",
            "DABS-Storm, figure 11b",
        ),
        Part(
            "twitter-smoothed",
            "foretide.load.shapes:twitter_smoothed",
            "three humps up to 5750/s, a quiet tail",
            "PA-SPS, section 4.1",
        ),
        Part(
            "frame-rate-long",
            "foretide.load.shapes:frame_rate_long",
            "6, 12, 6, 18 frames/s, long steps",
            "DRS, figure 9a",
        ),
        Part(
            "frame-rate-short",
            "foretide.load.shapes:frame_rate_short",
            "6 frames/s with short rises to 12 and 18",
            "DRS, figure 9b",
        ),
        Part(
            "ticks",
            "foretide.load.shapes:ticks",
            "a trading session: busy open and close, bursts",
            "FUGU, figure 3",
        ),
    ),
)


def load(
    name: str | Path,
    speed: float | None = None,
    scale: float = 1.0,
    form: CsvFormat | None = None,
    **parameters: Any,
) -> Load:
    """A built-in shape by name, or a CSV trace by path, read as ``form`` says.

    A shape takes its parameters as keywords or in the name. ``speed`` is rows per second of run
    time; without it a trace runs as fast as it was recorded and a shape at its own interval.

    >>> load("stable:mean=50,days=1,noise=0").peak
    50.0
    """
    text = str(name)
    shape, _, spec = text.partition(":")
    if shape in LOADS:
        series = replace(_shaped(text, shape, {**_parameters(text, spec), **parameters}), name=text)
    elif shape.lower().endswith(".csv") or Path(text).is_file():
        from foretide.load.recorded import read_csv  # which needs Load

        series = read_csv(text, form)
    else:
        _ = LOADS[shape]  # raises, naming the nearest shape
    return series.scaled(scale, speed)


def _shaped(name: str, shape: str, parameters: dict[str, Any]) -> Load:
    if negative := [key for key in LOADS.constants(shape) if parameters.get(key, 0) < 0]:
        raise InvalidConfig(f"load '{name}': {negative[0]} must be >= 0")
    try:
        return LOADS.build(shape, **parameters)
    except InvalidConfig:
        raise
    except (ValueError, OverflowError, MemoryError) as error:  # what numpy says of days=1e12
        raise InvalidConfig(f"load '{name}' cannot be made: {error}") from error


def _parameters(name: str, spec: str) -> dict[str, float | int]:
    values: dict[str, float | int] = {}
    for item in filter(None, spec.split(",")):
        key, equals, value = item.partition("=")
        try:
            number = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise InvalidConfig(
                f"load '{name}': write parameters as name:key=number,key=number; '{item}' is not "
                "one"
            )
        values[key.strip()] = int(number) if number.is_integer() else number
    return values
