"""``foretide systems`` and ``foretide models``: what is built in, one line each."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from foretide.forecast import FORECASTERS
from foretide.systems import SYSTEMS


def table(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print a plain table that also reads well when piped to a file."""
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        shown.add_column(column, no_wrap=column == columns[0])
    for row in rows:
        shown.add_row(*(escape(cell) for cell in row))
    Console().print(shown)


def list_systems() -> None:
    """List the built-in systems. Example: [bold]foretide systems[/]"""
    table(
        "Systems: published methods and the baselines everybody is compared with",
        ("system", "what it does", "forecaster", "planner", "source"),
        ((s.name, s.summary, s.forecaster, s.planner, s.source) for s in SYSTEMS.values()),
    )


def list_models() -> None:
    """List the forecasters. Example: [bold]foretide models[/]"""
    table(
        "Forecasters",
        ("model", "what it does", "source", "needs"),
        ((p.name, p.summary, p.source, f"foretide[{p.extra}]" if p.extra else "") for p in FORECASTERS),
    )
