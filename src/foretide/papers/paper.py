"""Records of a reproduction: rows of figures, ours beside published, and the orders that a paper
claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Cell = float | str | None


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
    """An order that the paper reports, and whether it came out here."""

    text: str
    holds: bool


@dataclass(frozen=True)
class PublishedTable:
    """One published table or figure, reproduced."""

    title: str
    rows: Sequence[Row]
    claims: Sequence[Claim] = ()
    note: str = ""

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
            f"**{self.title}**",
            "",
            f"| | {' | '.join(self.columns)} |",
            "|" + "---|" * (1 + len(self.columns)),
        ]
        out += [
            f"| {row.name} | {' | '.join(_cell(row, c) for c in self.columns)} |"
            for row in self.rows
        ]
        if self.claims:
            out += [
                "",
                *(
                    f"- {'came out' if c.holds else 'did NOT come out'}: {c.text}"
                    for c in self.claims
                ),
            ]
        return [*out, "", self.note] if self.note else out

    def as_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "rows": [
                {"name": r.name, "ours": dict(r.ours), "published": dict(r.published)}
                for r in self.rows
            ],
            "claims": [{"text": c.text, "holds": c.holds} for c in self.claims],
            "note": self.note,
        }


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
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
