"""What every demo does: run until its load is done, the dashboard and the screen beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from foretide.cli.live import sentences, spark_settings
from foretide.cli.out import say
from foretide.cli.run import SHARE, STOPPING, serve_beside
from foretide.cli.screen import Screen, summary
from foretide.demo import DRAIN_S, WARM_UP_S, WINDOW_S
from foretide.journal import Run
from foretide.model import Decision

if TYPE_CHECKING:
    from foretide.load import Load
    from foretide.spark.control.live import LiveRun
    from foretide.spark.declare.pipeline import Pipeline
    from foretide.spark.run.running import Running
    from foretide.systems import System


def live_run(
    pipeline: Pipeline,
    system: System,
    folder: Path,
    target_s: float,
    past: Callable[[float], Load],
    **more: Any,
) -> LiveRun:
    """A demo's run: it acts, and ends when nothing waits any more."""
    from foretide.spark.control.live import LiveRun

    return LiveRun(
        pipeline,
        system,
        folder,
        "act",
        WINDOW_S,
        target_s,
        short_run=True,
        until_idle=True,
        share=SHARE,
        past=past,
        **more,
    )


def with_page() -> Mapping[str, str]:
    """Spark's settings for a run that links Spark's own page."""
    return spark_settings(None, [], with_page=True)


def windows(duration_s: int) -> int:
    """Windows of a demo whose load lasts so long, from the warm-up to the drained pipeline."""
    return round((duration_s + WARM_UP_S + DRAIN_S) / WINDOW_S)


def watch(
    live: LiveRun, steps: int, port: int, first: str, ended: Callable[[Running], None]
) -> tuple[Run, list[Decision]]:
    """Run with the dashboard and the screen beside and print the summary; what ran and its
    decisions. ``first`` is said before Spark starts.
    """
    with ExitStack() as beside:
        serve_beside(beside, live.journal, port)
        say(first)
        screen = beside.enter_context(Screen(Console(highlight=False)))
        beside.enter_context(sentences(live.folder))
        ran, decisions = live.go(
            screen.show,
            steps,
            started=screen.started,
            stopping=lambda: say(STOPPING),
            ended=ended,
        )
    say(summary(ran, decisions))
    return ran, decisions
