"""``foretide demo``: the main job, for somebody who has two minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foretide import demo
from foretide.cli import report


def command(
    system: Annotated[str, typer.Option(help="the system that scales; see: foretide systems")] = "pa-sps",
    seconds: Annotated[int, typer.Option(help="how long the load lasts", min=20)] = 120,
    folder: Annotated[Path, typer.Option(help="where the run is kept; an older demo there is removed")] = Path("runs/demo"),
) -> None:
    """Watch a four-operator pipeline on local Spark being scaled live. Example: [bold]foretide demo --seconds 60[/]"""
    demo.run(system, seconds, folder)
    report.close(folder)
