"""``foretide run``: a user's own pipeline under the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from foretide.cli import report
from foretide.cli.out import say
from foretide.cli.screen import Screen, summary
from foretide.config import Settings, load_settings
from foretide.errors import InvalidConfig
from foretide.model import Mode

SYSTEM = "pa-sps"
SHORTEST_WINDOW_S = 0.5


def command(
    pipeline: Annotated[
        str, typer.Argument(help="MODULE:PIPELINE or FILE.py:PIPELINE", metavar="MODULE:PIPELINE")
    ],
    system: Annotated[
        str | None, typer.Option(help=f"the system that scales; see: foretide systems ({SYSTEM})")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="advise: only say what it would do; act: do it (advise)", metavar="advise|act"
        ),
    ] = None,
    window: Annotated[
        float | None,
        typer.Option(help="seconds between two steps of the loop (10)", min=SHORTEST_WINDOW_S),
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option(help="stop after so many windows (default: run until Ctrl-C)", min=1),
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="latency target in seconds, end to end")
    ] = None,
    master: Annotated[
        str, typer.Option(help="Spark master: local[SLOTS], spark://..., yarn, k8s://...")
    ] = "local[32]",
    speed: Annotated[
        float | None,
        typer.Option(help="rows of generated loads per second of run time; default: as declared"),
    ] = None,
    scale: Annotated[float, typer.Option(help="factor on the counts of generated loads")] = 1.0,
    folder: Annotated[
        Path | None, typer.Option(help="where the run is kept (default: runs/<pipeline's name>)")
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings", help="a TOML file: guards, prices, your own system; options here go first"
        ),
    ] = None,
) -> None:
    """Run your pipeline under the loop. Example: [bold]foretide run foretide.examples.words:pipeline
    --system pa-sps --mode act[/]
    """
    if mode not in (None, "advise", "act"):
        raise typer.BadParameter(f"'{mode}' is not a mode: advise or act", param_hint="--mode")
    told = load_settings(settings) if settings else Settings()
    chosen: Mode = told.mode if mode is None else "act" if mode == "act" else "advise"
    scales = (msgspec.structs.replace(told.system, name=system) if system else told.system).build(
        SYSTEM
    )
    window_s, target_s = (
        window or told.window_s,
        told.target_latency_s if target is None else target,
    )
    if window_s < SHORTEST_WINDOW_S:
        raise InvalidConfig(
            f"a window of {window_s:g} s is too short: give {SHORTEST_WINDOW_S:g} s or more"
        )
    if target_s is not None and not 0 < target_s < float("inf"):
        raise InvalidConfig(f"--target {target_s:g}: the latency target is more than 0 seconds")
    from foretide.spark.control.live import (
        LiveRun,
        find_pipeline,
    )  # Spark is only imported when it is needed

    found = find_pipeline(pipeline)
    if speed is not None or scale != 1.0:
        found.rescale(scale, speed)
    found.topology()  # what is wrong with the graph is told before Spark starts
    live = LiveRun(
        found, scales, folder or Path(told.runs_dir) / found.name, chosen, window_s, target_s, master, prices=told.prices
    )  # fmt: skip
    console = Console()
    say("Starting Spark ...")
    with Screen(console) as screen:
        ran, decisions = live.go(screen.show, windows, started=screen.started)
    say(summary(ran, decisions))
    say(f"journal: {live.journal}")
    report.close(live.journal)
