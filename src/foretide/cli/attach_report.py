"""``foretide attach-report``: one page about a run of attach."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foretide.figures.attach_report import attach_page


def command(
    run: Annotated[Path, typer.Argument(help="the run's folder or its journal.jsonl")],
) -> None:
    """What attach did, or in advise mode would have done, and what it saves.

    Example: [bold]foretide attach-report runs/attach-20261116-080000[/]
    """
    typer.echo(attach_page(run), nl=False)
