"""``foretide demo``: the main job, for somebody who has four minutes."""

from __future__ import annotations

import importlib
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foretide.cli import report
from foretide.cli.demo_app import APPS, run_app
from foretide.cli.demo_live import live_run, watch, windows, with_page
from foretide.cli.out import say
from foretide.cli.run import SHARE, SYSTEM, check_parts
from foretide.demo import TARGET_LATENCY_S, WARM_UP_S, balance, demo_folder
from foretide.errors import InvalidConfig
from foretide.figures.ahead import ahead
from foretide.figures.record import RunRecord
from foretide.systems import system as named

if TYPE_CHECKING:
    from foretide.spark.run.running import Running


class Edges(StrEnum):
    """Kinds of edges between operators."""

    DIRECTORY = "directory"
    KAFKA = "kafka"


def command(
    app: Annotated[
        str | None,
        typer.Option(help=f"an example with real work instead: {', '.join(APPS)}"),
    ] = None,
    system: Annotated[
        str, typer.Option(help="the system that scales; see: foretide systems (foretide)")
    ] = SYSTEM,
    minutes: Annotated[float, typer.Option(help="how long the load lasts", min=0.5)] = 4.0,
    folder: Annotated[
        Path, typer.Option(help="where the run is kept; an older demo there is removed")
    ] = Path("runs/demo"),
    port: Annotated[
        int,
        typer.Option(help="the dashboard's port; the next free one if taken", min=0, max=65535),
    ] = 8765,
    edges: Annotated[
        Edges, typer.Option(help="what the operators hand events on through")
    ] = Edges.DIRECTORY,
) -> None:
    """Watch a four-operator pipeline on local Spark being scaled live.

    Examples: [bold]foretide demo --minutes 1[/], [bold]foretide demo --app dns[/]
    """
    with demo_folder(folder):
        try:
            if app is None:
                _run(system, round(60 * minutes), folder, port, edges)
            elif edges is Edges.KAFKA:
                raise InvalidConfig(
                    "--edges kafka goes with the demo's own pipeline, without --app"
                )
            else:
                run_app(app, named(system), round(60 * minutes), folder, port)
        except KeyboardInterrupt:
            say("stopped before the first window.")
            raise typer.Exit(130) from None
        report.close(folder)


def _run(system_name: str, duration_s: int, folder: Path, port: int, edges: Edges) -> None:
    """Run the load, drain the pipeline, print the summary. Ctrl-C ends it early, with the same
    summary.
    """
    system = named(system_name).promised(TARGET_LATENCY_S, SHARE)
    check_parts(system)
    importlib.import_module("foretide.spark")  # says what to install where Spark is missing
    from foretide.demo.broker import Broker
    from foretide.demo.tweets import Table, Tweets, demo_load, demo_past, tweets
    from foretide.spark import kafka

    table = Table(folder / "tweets.sqlite")
    pipeline = tweets(demo_load(duration_s, WARM_UP_S), table, after_s=WARM_UP_S)
    source = pipeline.sources["stream"].open
    assert isinstance(source, Tweets)
    total = source.timetable.total
    came_in = 0

    def ended(running: Running) -> None:
        nonlocal came_in
        came_in = running.accounts.consumed("parse")

    live = live_run(
        pipeline,
        system,
        folder,
        TARGET_LATENCY_S,
        demo_past,
        preload=(tweets.__module__,),
        spark_settings=with_page(),
    )
    steps = windows(duration_s)
    with ExitStack() as beside:
        if edges is Edges.KAFKA:
            say("Starting a Kafka broker on this machine ...")
            pipeline.edges = kafka(beside.enter_context(Broker(folder / "kafka")).servers)
        first = f"Starting Spark with four operators; {total} tweets in {duration_s} s follow ..."
        ran, decisions = watch(live, steps, port, first, ended)
    if (foresight := ahead(RunRecord.of_journal(ran, decisions))) is not None:
        say(str(foresight))
    say(balance(came_in, total, table.counts(), len(decisions) < steps))
    say(f"journal: {live.journal}; look again: foretide dashboard {folder}")
