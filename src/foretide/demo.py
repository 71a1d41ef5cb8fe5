"""The demo: a four-operator pipeline on local Spark under a changing load, scaled live; ends with what it saved."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from foretide.autoscaler import Cadence
from foretide.errors import InvalidConfig
from foretide.screen import Screen, summary
from foretide.systems import System, system

WINDOW_S = 5.0
WARM_UP_S = 20.0
TARGET_LATENCY_S = 10.0


def demo_system(name: str) -> System:
    """A system as declared, but planning at least every 10 seconds: two minutes leave no time for more."""
    chosen = system(name)
    if chosen.cadence.plan_every * WINDOW_S > 10.0:
        chosen = replace(chosen, cadence=Cadence(lookback=chosen.cadence.lookback, scope=chosen.cadence.scope))
    return chosen


def clear(folder: Path) -> None:
    """Remove an older demo; anything else that lies there is left alone and is an error."""
    if folder.exists():
        if any(folder.iterdir()) and not (folder / "pipeline" / "pipeline.json").exists():
            raise InvalidConfig(f"{folder} holds something that is not an older demo: choose an empty folder with --folder")
        shutil.rmtree(folder)


def run(system_name: str, duration_s: int, folder: Path) -> None:
    """Run for about ``duration_s`` seconds plus a warm-up; Ctrl-C ends it early with the same summary."""
    from foretide.spark.demo_chain import chain, demo_load  # Spark is only imported when the demo runs
    from foretide.spark.live import LiveRun

    clear(folder)
    console = Console()
    console.print("Starting Spark with four operators (about 20 seconds) ...")
    pipeline = chain(demo_load(duration_s), after_s=WARM_UP_S)
    live = LiveRun(pipeline, demo_system(system_name), folder, "act", WINDOW_S, TARGET_LATENCY_S, short_run=True)
    steps = round((duration_s + WARM_UP_S) / WINDOW_S)
    with Screen(console) as screen:
        ran, decisions = live.go(screen.show, steps, started=screen.started)
    console.print(summary(ran, decisions), highlight=False)
    console.print(f"journal: {live.journal}", highlight=False, soft_wrap=True)
