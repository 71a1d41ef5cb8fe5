"""``foretide demo``: the main job, for somebody who has three minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from foretide import demo
from foretide.cli import report


def command(
    system: Annotated[str, typer.Option(help="the system that scales; see: foretide systems")] = "pa-sps",
    minutes: Annotated[float, typer.Option(help="how long the load lasts", min=0.5)] = 3.0,
    folder: Annotated[Path, typer.Option(help="where the run is kept; an older demo there is removed")] = Path("runs/demo"),
    port: Annotated[int, typer.Option(help="the dashboard's port; the next free one when taken", min=0, max=65535)] = 8765,
) -> None:
    """Watch a four-operator pipeline on local Spark being scaled live. Example: [bold]foretide demo --minutes 1[/]"""
    try:
        demo.run(system, round(60 * minutes), folder, port)
    except KeyboardInterrupt:
        Console().print("stopped before the first window.")
        raise typer.Exit(130) from None
    report.close(folder)
