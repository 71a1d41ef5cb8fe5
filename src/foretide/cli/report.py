"""``foretide report``: a finished run's journal as an HTML page."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from foretide import report


def command(
    journal: Annotated[Path, typer.Argument(help="a run's folder or its journal.jsonl")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="the page; default: report.html beside the journal")] = None,
) -> None:
    """Make a report of a finished run. Example: [bold]foretide report runs/demo[/]"""
    beside = journal / "report.html" if journal.is_dir() else journal.with_name("report.html")
    path = report.write(output or beside, report.of_journal(journal, shlex.join(["foretide", *sys.argv[1:]])))
    Console().print(f"report: {path}", highlight=False, soft_wrap=True)
