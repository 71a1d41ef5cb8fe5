"""``foretide report``: a finished run's journal as an HTML page."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from foretide import report
from foretide.cli.out import say
from foretide.errors import ForetideError


def command(
    journal: Annotated[Path, typer.Argument(help="a run's folder or its journal.jsonl")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="the page; default: report.html beside the journal"),
    ] = None,
) -> None:
    """Make a report of a finished run.

    Example: [bold]foretide report runs/demo[/]
    """
    _write(journal, output or _beside(journal))


def close(journal: Path) -> None:
    """Write the report of a run that just ended beside its journal. A run too short for a report
    prints the reason and is no failure.
    """
    try:
        _write(journal, _beside(journal))
    except ForetideError as error:
        say(f"no report: {error}")


def _beside(journal: Path) -> Path:
    return journal / "report.html" if journal.is_dir() else journal.with_name("report.html")


def _write(journal: Path, output: Path) -> None:
    path = report.write(output, report.of_journal(journal, shlex.join(["foretide", *sys.argv[1:]])))
    say(f"report: {path}")
