"""``foretide systems`` and ``foretide models``: what is built in, one line each."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from foretide.cli.out import console, labelled, titled
from foretide.forecast import FORECASTERS
from foretide.systems import SYSTEMS

FIRST = ("foretide", "ds2", "drs", "static-peak", "clairvoyant-target")
"""The systems to try first: few, fast and unlike each other."""


def table(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print what is built in: one line each, unless a terminal is too narrow for it."""
    shown = titled(title)
    for column in columns:
        shown.add_column(column, no_wrap=column == columns[0], overflow="fold")
    for row in rows:
        shown.add_row(*map(Text, row))
    console().print(shown)


def list_systems() -> None:
    """List the built-in systems.

    Example: [bold]foretide systems[/]
    """
    table(
        "Systems: published methods and the baselines everybody is compared with",
        ("system", "what it does", "forecaster", "planner", "source"),
        ((s.name, s.summary, s.forecaster, s.planner, s.source) for s in SYSTEMS.values()),
    )
    labelled(
        "try first:",
        "cyan",
        f"foretide compare --systems {','.join(FIRST)} (the default, the plain rule, a "
        "published system, what people do without scaling, the limit)",
    )


def list_models() -> None:
    """List the forecasters.

    Example: [bold]foretide models[/]
    """
    table(
        "Forecasters",
        ("model", "what it does", "source", "needs"),
        (
            (p.name, p.summary, p.source, f"foretide[{p.extra}]" if p.extra else "")
            for p in FORECASTERS
        ),
    )
