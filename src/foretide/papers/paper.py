"""Records of a reproduction: rows of figures, ours beside published, and the orders that a paper
claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

Cell = float | str | None
COLUMNS = 100


@dataclass(frozen=True, slots=True)
class Bench:
    """What a run of a paper's tables is asked for.

    ``seed`` is the first seed, ``seeds`` how many runs are averaged where a table repeats its runs
    (None: the paper's own number), ``data`` a directory with the authors' loads (None: the built-in
    shapes), ``full`` also trains the networks, ``processes`` runs side by side (None: one per
    core).
    """

    seed: int = 1
    seeds: int | None = None
    data: Path | None = None
    full: bool = False
    processes: int | None = None

    def run_seeds(self, usual: int) -> range:
        """The seeds of a table that repeats its runs ``usual`` times unless asked otherwise."""
        return range(self.seed, self.seed + (self.seeds or usual))


@dataclass(frozen=True)
class Row:
    """One line of a table: what it is about, our figures, and the published ones of the same names
    (where there are any).
    """

    name: str
    ours: Mapping[str, Cell]
    published: Mapping[str, Cell] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """An order that the paper reports, and whether it came out here. ``text`` is the same in every
    run; ``detail`` holds the figures of this one.
    """

    text: str
    holds: bool
    detail: str = ""

    @property
    def line(self) -> str:
        verdict = "came out" if self.holds else "did NOT come out"
        return f"{verdict}: {self.text}{f' ({self.detail})' if self.detail else ''}"


@dataclass(frozen=True)
class PublishedTable:
    """One published table or figure, reproduced. ``key`` names its place on the paper's page."""

    title: str
    rows: Sequence[Row]
    claims: Sequence[Claim] = ()
    note: str = ""
    key: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c for row in self.rows for c in (*row.ours, *row.published)))

    def lines(self) -> list[str]:
        r"""The table as Markdown: each cell is ours, and the published value in brackets where
        there is one.

        >>> row, claim = Row("a", {"x": 1.25}, {"x": 2.0}), Claim("x falls", True)
        >>> print("\n".join(PublishedTable("t", [row], [claim]).lines()))
        **t**
        <BLANKLINE>
        | | x |
        |---|---|
        | a | 1.25 (2) |
        <BLANKLINE>
        - came out: x falls
        """
        out = [
            *wrap(f"**{self.title}**", COLUMNS),
            "",
            f"| | {' | '.join(self.columns)} |",
            "|" + "---|" * (1 + len(self.columns)),
        ]
        out += [
            f"| {row.name} | {' | '.join(_cell(row, c) for c in self.columns)} |"
            for row in self.rows
        ]
        if self.claims:
            out += ["", *(x for c in self.claims for x in _item(c.line))]
        return [*out, "", *wrap(self.note, COLUMNS)] if self.note else out

    def as_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "rows": [
                {"name": r.name, "ours": dict(r.ours), "published": dict(r.published)}
                for r in self.rows
            ],
            "claims": [{"text": c.text, "holds": c.holds, "detail": c.detail} for c in self.claims],
            "note": self.note,
            "key": self.key,
        }


def _item(text: str) -> list[str]:
    return wrap(f"- {text}", COLUMNS, subsequent_indent="  ", break_on_hyphens=False)


# 97.5 % quantiles of Student's t with 1, 2, ... degrees of freedom; beyond the list, 1.96
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14,
            2.13, 2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07)  # fmt: skip


def half_width(values: Sequence[float]) -> float:
    """Half the 95 % interval of the mean of independent runs (Student's t); NaN for one run.

    >>> round(half_width([1.0, 2.0, 3.0]), 2)
    2.48
    """
    n = len(values)
    if n < 2:
        return float("nan")
    t = _STUDENT[n - 2] if n - 2 < len(_STUDENT) else 1.96
    return float(t * np.std(values, ddof=1) / np.sqrt(n))


def interval(values: Sequence[float]) -> Cell:
    """The mean of independent runs with its 95 % interval; one run is a plain figure.

    >>> interval([1.0, 2.0, 3.0]), interval([2.0])
    ('2 ± 2.5', 2.0)
    """
    mean = float(np.mean(values))
    return mean if len(values) < 2 else plus_minus(mean, half_width(values))


def plus_minus(mean: float, width: float) -> str:
    """A mean and half its interval, the latter with two digits that matter.

    >>> plus_minus(7547.3, 151.2)
    '7547 ± 150'
    """
    return f"{shown(mean)} ± {shown(float(f'{width:.2g}'))}"


def _cell(row: Row, column: str) -> str:
    text = shown(row.ours.get(column))
    published = row.published.get(column)
    return text if published is None else f"{text} ({shown(published)})"


def shown(value: Cell) -> str:
    """A figure with at most four digits that matter; what was not measured is a dash.

    >>> shown(1234.5), shown(0.12345), shown(None), shown("2:4:1"), shown(1.0)
    ('1234', '0.1235', '-', '2:4:1', '1')
    """
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if abs(value) < 1e-9:
        return "0"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
