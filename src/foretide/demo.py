"""The demo: tweets on local Spark under a changing load, scaled live, with the dashboard; ends with what it cost and what came out."""

from __future__ import annotations

import json
import shutil
import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from foretide.autoscaler import Cadence
from foretide.errors import InvalidConfig, PipelineFailed
from foretide.screen import Screen, summary
from foretide.systems import System, system
from foretide.web import serve

if TYPE_CHECKING:
    from foretide.spark.running import Running

WINDOW_S = 5.0
WARM_UP_S = 25.0
DRAIN_S = 180.0
TARGET_LATENCY_S = 15.0
PORTS_TRIED = 50
PIPELINE = "tweets"


def demo_system(name: str) -> System:
    """A system as declared, made quick enough for three minutes.

    It plans every window of 5 seconds, for 10 seconds ahead. PA-SPS's own network forecasts after ten windows only, so ``auto`` does
    it, which is ready at once; and tweets cost all the same, so they are dealt out in turn, which takes a pass less than load-aware.
    """
    chosen = system(name)
    if chosen.cadence.plan_every * WINDOW_S > 10.0:
        chosen = replace(chosen, cadence=Cadence(horizon=2, lookback=chosen.cadence.lookback, scope=chosen.cadence.scope))
    if name == "pa-sps":
        chosen = replace(chosen, forecaster="auto", quantile=0.9, grouping="shuffle")
    return chosen


def free_port(port: int) -> int:
    """The port itself, or the next one on loopback that nobody uses; 0 stays 0."""
    for tried in range(port, min(port + PORTS_TRIED, 65536)) if port else ():
        with closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", tried))
            except OSError:
                continue
            return tried
    return 0


def _is_demo(folder: Path) -> bool:
    """Whether a demo ran here, or died while Spark started. A pipeline of somebody's own is none: its events are theirs."""
    file = folder / "pipeline" / "pipeline.json"
    if not file.exists():
        return (folder / "spark.log").exists()
    try:
        return bool(json.loads(file.read_bytes())["name"] == PIPELINE)
    except (ValueError, KeyError, TypeError):
        return False


def clear(folder: Path) -> None:
    """Remove an older demo; anything else that lies there is left alone and is an error."""
    if folder.exists():
        if not folder.is_dir() or (any(folder.iterdir()) and not _is_demo(folder)):
            raise InvalidConfig(f"{folder} holds something that is not an older demo: choose an empty folder with --folder")
        shutil.rmtree(folder)


def balance(came_in: int, total: int, counts: dict[str, int], stopped: bool = False) -> str:
    """The line about events in and out; raises PipelineFailed when nobody stopped the run and something is missing or doubled.

    >>> balance(10, 10, {"sport": 7, "spam": 3})
    'events in 10 = events out 10, rows in SQLite: sport 7, spam 3.'
    >>> balance(8, 10, {"sport": 7}, stopped=True)
    'stopped early: 8 of 10 events came in, 7 are rows in SQLite (sport 7); still on the way: 1.'
    """
    out = sum(counts.values())
    topics = ", ".join(f"{name} {n}" for name, n in counts.items()) or "none"
    if came_in == total == out:
        return f"events in {came_in} = events out {out}, rows in SQLite: {topics}."
    if not stopped or out > came_in:
        raise PipelineFailed(f"{came_in} of {total} events came in and {out} rows are in SQLite: the pipeline did not end in time")
    return f"stopped early: {came_in} of {total} events came in, {out} are rows in SQLite ({topics}); still on the way: {came_in - out}."


def run(system_name: str, duration_s: int, folder: Path, port: int) -> None:
    """Run the load, empty the pipeline, tell what came out. Ctrl-C ends it early, with the same summary."""
    chosen = demo_system(system_name)
    from foretide.spark.live import LiveRun  # Spark is only imported when the demo runs
    from foretide.spark.tweets import Table, Tweets, demo_load, tweets

    clear(folder)
    console = Console(highlight=False)
    table = Table(folder / "tweets.sqlite")
    pipeline = tweets(demo_load(duration_s), table, after_s=WARM_UP_S)
    source = pipeline.sources["stream"].open
    assert isinstance(source, Tweets)
    total = source.timetable.total
    came_in = 0

    def ended(running: Running) -> None:
        nonlocal came_in
        came_in = running.consumed("parse")

    live = LiveRun(
        pipeline, chosen, folder, "act", WINDOW_S, TARGET_LATENCY_S, short_run=True, until_idle=True, preload=(tweets.__module__,)
    )
    steps = round((duration_s + WARM_UP_S + DRAIN_S) / WINDOW_S)
    with serve(live.journal, port=(found := free_port(port))) as site:
        taken = f" (port {port} is taken)" if found != port else ""
        console.print(f"dashboard: [bold cyan]{site.url}[/]{taken}; its advise/act switch asks for {site.token}", soft_wrap=True)
        console.print(f"Starting Spark with four operators; {total} tweets in {duration_s} s follow ...")
        with Screen(console) as screen:
            ran, decisions = live.go(screen.show, steps, started=screen.started, ended=ended)
    for told in (
        summary(ran, decisions),
        balance(came_in, total, table.counts(), len(decisions) < steps),
        f"journal: {live.journal}; look again: foretide dashboard {folder}",
    ):
        console.print(told, markup=False, soft_wrap=True)
