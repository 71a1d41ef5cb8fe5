"""``foretide run``: a user's own pipeline under the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from foretide.cli import report
from foretide.model import Mode
from foretide.screen import Screen, summary
from foretide.systems import system as system_named


def command(
    pipeline: Annotated[str, typer.Argument(help="MODULE:PIPELINE or FILE.py:PIPELINE", metavar="MODULE:PIPELINE")],
    system: Annotated[str, typer.Option(help="the system that scales; see: foretide systems")] = "pa-sps",
    mode: Annotated[str, typer.Option(help="advise: only say what it would do; act: do it", metavar="advise|act")] = "advise",
    window: Annotated[float, typer.Option(help="seconds between two steps of the loop", min=0.5)] = 10.0,
    windows: Annotated[int | None, typer.Option(help="stop after so many windows (default: run until Ctrl-C)", min=1)] = None,
    target: Annotated[float | None, typer.Option(help="latency target in seconds, end to end")] = None,
    master: Annotated[str, typer.Option(help="Spark master: local[SLOTS], spark://..., yarn, k8s://...")] = "local[32]",
    folder: Annotated[Path | None, typer.Option(help="where the run is kept (default: runs/<pipeline's name>)")] = None,
) -> None:
    """Run your pipeline under the loop. Example: [bold]foretide run examples/words.py:pipeline --system pa-sps --mode act[/]"""
    if mode not in ("advise", "act"):
        raise typer.BadParameter(f"'{mode}' is not a mode: advise or act", param_hint="--mode")
    chosen: Mode = "act" if mode == "act" else "advise"
    by_name = system_named(system)
    from foretide.spark.live import LiveRun, find_pipeline  # Spark is only imported when it is needed

    found = find_pipeline(pipeline)
    live = LiveRun(found, by_name, folder or Path("runs") / found.name, chosen, window, target, master)
    console = Console()
    console.print("Starting Spark ...")
    with Screen(console) as screen:
        ran, decisions = live.go(screen.show, windows, started=screen.started)
    console.print(summary(ran, decisions), highlight=False)
    console.print(f"journal: {live.journal}", highlight=False, soft_wrap=True)
    report.close(live.journal)
