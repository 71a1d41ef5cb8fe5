"""Recorded loads: a CSV file with a column of time stamps and a column of counts.

Owns which columns are read, which unit the stamps have, and what is said about a guess. A stamp
that names no zone is UTC, so that a trace reads the same everywhere: in a zone with summer time an
hour of the year does not exist.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from foretide.errors import InvalidConfig, unknown
from foretide.load.series import MOST, Load
from foretide.model import Array

TIMES = ("timestamp", "time", "datetime", "date", "ts", "at", "minute", "second", "hour")
COUNTS = ("rate", "count", "counts", "events", "requests", "value", "total", "n")
PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_SINCE_1973 = {"s": 1e8, "ms": 1e11, "us": 1e14, "ns": 1e17}


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """How to read a file; None is guessed, and the guess is noted on the load.

    ``count_column`` holds events per interval, ``rate_column`` events per second. ``unit`` is that
    of numeric stamps: s, ms, us or ns.
    """

    time_column: str | None = None
    count_column: str | None = None
    rate_column: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.unit is not None and self.unit not in UNITS:
            raise unknown("unit", self.unit, UNITS)
        if self.count_column is not None and self.rate_column is not None:
            raise InvalidConfig(
                "--count-column and --rate-column exclude each other: give the one in the file"
            )


def read_csv(path: str | Path, form: CsvFormat | None = None) -> Load:
    """A recorded load: one row per interval, the median distance of the stamps.

    The columns are found by name, whatever their case: ``timestamp`` and ``rate`` by convention,
    where ``rate`` is the number of events in the interval.
    """
    path, form = Path(path), form or CsvFormat()
    header, rows = _rows(path)
    time = _column(path, header, form.time_column, TIMES, "--time-column")
    asked = form.rate_column or form.count_column
    count = _column(path, header, asked, COUNTS, "--count-column or --rate-column")
    stamps, numeric = _stamps(path, [(line, _cell(row, time)) for line, row in rows])
    counts = np.array([_count(path, line, header[count], _cell(row, count)) for line, row in rows])
    if len(counts) < 2:
        raise InvalidConfig(
            f"{path} has {len(counts)} rows: a trace needs at least two, so that its interval is "
            "known"
        )
    notes: list[str] = []
    if numeric:
        unit = form.unit or _unit(stamps)
        if form.unit is None and unit != "s":
            notes.append(f"the stamps of {path} look like {UNITS[unit]} and are taken as such")
        stamps = stamps / PER_SECOND[unit]
    interval_s = _interval_s(path, stamps)
    if form.rate_column is not None:
        counts = counts * interval_s
    elif asked is None and header[count].lower() == "rate" and interval_s != 1.0:
        notes.append(
            f"column '{header[count]}' of {path} is read as events per row of {interval_s:g} s, "
            f"{counts.max() / interval_s:,.4g} events/s at the peak; if it holds events/s, "
            f"give --rate-column {header[count]}"
        )
    dated = not numeric or stamps[0] >= _SINCE_1973["s"]
    return Load(
        path.stem, counts, interval_s, float(stamps[0]) if dated else None, notes=tuple(notes)
    )


def _rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as f:
            lines = csv.reader(f)
            header = [c.strip() for c in next(lines, [])]
            return header, [(lines.line_num, row) for row in lines if row]
    except OSError as error:
        raise InvalidConfig(f"cannot read the load {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"{path} is not a text file in UTF-8: {error.reason}") from error
    except csv.Error as error:
        raise InvalidConfig(f"{path}, line {lines.line_num}: not CSV: {error}") from error


def _column(
    path: Path, header: Sequence[str], asked: str | None, usual: Sequence[str], option: str
) -> int:
    lower = [name.lower() for name in header]
    if asked is not None:
        if asked.lower() not in lower:
            raise InvalidConfig(f"{path}: {unknown('column', asked, header)}")
        return lower.index(asked.lower())
    for name in usual:
        if name in lower:
            return lower.index(name)
    raise InvalidConfig(
        f"{path}: the first line must name the columns, as 'timestamp,rate'; it is "
        f"'{','.join(header)[:80]}': name the column with {option}"
    )


def _cell(row: Sequence[str], column: int) -> str:
    return row[column].strip() if column < len(row) else ""


def _stamps(path: Path, cells: Sequence[tuple[int, str]]) -> tuple[Array, bool]:
    """The stamps, and whether they are plain numbers; dates become seconds of UTC."""
    values = list(_instants(path, cells))
    return np.array([v for v, _ in values]), all(number for _, number in values)


def _instants(path: Path, cells: Sequence[tuple[int, str]]) -> Iterator[tuple[float, bool]]:
    for line, text in cells:
        number = True
        try:
            instant = float(text)
        except ValueError:
            number = False
            try:
                at = datetime.fromisoformat(text)
                instant = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
            except ValueError:
                instant = float("nan")
        if not np.isfinite(instant):
            raise InvalidConfig(
                f"{path}, line {line}: time stamp {text[:60]!r} is neither ISO 8601 "
                "(2024-05-01T12:00:00) nor a number of seconds"
            )
        yield instant, number


def _unit(stamps: Array) -> str:
    """The unit of numeric stamps: by their size where they count from 1970, else milliseconds where
    rows are whole thousands apart.

    >>> _unit(np.array([1.7e12, 1.7e12 + 60e3])), _unit(np.array([0.0, 1000.0, 2000.0]))
    ('ms', 'ms')
    >>> _unit(np.array([1.7e9, 1.7e9 + 60])), _unit(np.array([0.0, 3600.0, 7200.0]))
    ('s', 's')
    """
    for unit in ("ns", "us", "ms", "s"):
        if stamps[0] >= _SINCE_1973[unit]:
            return unit
    step = float(np.median(np.diff(stamps))) if len(stamps) > 1 else 0.0
    return "ms" if step >= 1000 and step % 1000 == 0 else "s"


def _interval_s(path: Path, stamps: Array) -> float:
    steps = np.diff(stamps)
    if np.any(steps < 0):
        raise InvalidConfig(
            f"{path}, row {int(np.flatnonzero(steps < 0)[0]) + 2}: time stamps must not go backward"
        )
    interval_s = float(np.median(steps))
    if interval_s <= 0:
        raise InvalidConfig(
            f"{path}: most time stamps are equal, so the interval between rows is unknown"
        )
    return interval_s


def _count(path: Path, line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= MOST:
        raise InvalidConfig(
            f"{path}, line {line}: {column} {text[:60]!r} must be a number from 0 to {MOST:g}, the "
            "events in that interval"
        )
    return value
