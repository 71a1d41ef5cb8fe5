"""``foretide demo``: the main job, for somebody who has two minutes."""

from __future__ import annotations

from typing import Annotated

import typer

from foretide import demo


def command(
    system: Annotated[str, typer.Option(help="the system that scales; see: foretide systems")] = "srea",
    windows: Annotated[int, typer.Option(help="how many windows to run", min=1)] = 60,
    pace: Annotated[float, typer.Option(help="seconds a window takes on screen", min=0.0)] = 0.15,
) -> None:
    """Watch the loop scale a four-operator pipeline. Example: [bold]foretide demo --windows 30[/]"""
    demo.run(system, windows, pace)
