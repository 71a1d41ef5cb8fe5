"""``foretide examples``: the examples that ship with the package, listed or printed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from foretide import examples
from foretide.cli.systems import table


def command(
    name: Annotated[
        str | None, typer.Argument(help="print this example; default: list all")
    ] = None,
) -> None:
    """List the examples, or print one.

    Example: [bold]foretide examples words.py > words.py[/]
    """
    if name is not None:
        sys.stdout.write(examples.source(name))
        return
    table(
        "Examples: pipelines and settings to run or to copy",
        ("example", "what it shows"),
        ((name, examples.summary(name)) for name in examples.names()),
    )
