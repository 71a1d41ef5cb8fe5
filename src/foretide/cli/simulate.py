"""``foretide simulate`` and ``foretide compare``: systems on an app under a load, without Spark."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from foretide import report as html
from foretide.apps import app as app_named
from foretide.cli.out import console, labelled, say, titled
from foretide.config import Settings, load_settings
from foretide.errors import InvalidConfig
from foretide.figures.comparison import Comparison
from foretide.figures.saving import percent
from foretide.load import load as load_named
from foretide.report.words import FIGURES, verdict
from foretide.sim import compare as comparing
from foretide.systems import SYSTEMS, System, system

AppOption = Annotated[str, typer.Option("--app", help="the pipeline; see: foretide apps")]
LoadOption = Annotated[
    str | None,
    typer.Option(
        "--load", help="a shape (see: foretide loads) or a CSV file; default: the app's own"
    ),
]
SpeedOption = Annotated[
    float | None, typer.Option(help="rows of the load per second of run time; default: as recorded")
]
ScaleOption = Annotated[float, typer.Option(help="factor on the load's counts")]
WindowOption = Annotated[
    float | None, typer.Option("--window", help="seconds between two plans; default: the app's own")
]
SeedOption = Annotated[int, typer.Option(help="the same seed gives the same events", min=0)]
EngineOption = Annotated[
    str, typer.Option(help="events, fluid (long loads), batch (as Spark runs) or auto")
]
LeadOption = Annotated[
    float | None,
    typer.Option("--lead", help="seconds from asking for capacity until it works; default: 0"),
]
CoresOption = Annotated[
    int | None,
    typer.Option(
        "--cores", help="replicas need slots: executors of so many cores, which take the lead time"
    ),
]
SettingsOption = Annotated[
    Path | None, typer.Option("--settings", help="a TOML file: your prices, and your own system")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="one JSON object on standard output, nothing else")
]
ReportOption = Annotated[
    Path | None, typer.Option("--report", help="write an HTML report to this file")
]


def simulate(
    app: AppOption = "twitter-linear",
    load: LoadOption = None,
    system_name: Annotated[
        str | None, typer.Option("--system", help="who scales; see: foretide systems (srea)")
    ] = None,
    speed: SpeedOption = None,
    scale: ScaleOption = 1.0,
    window_s: WindowOption = None,
    seed: SeedOption = 1,
    engine: EngineOption = "auto",
    lead_s: LeadOption = None,
    cores: CoresOption = None,
    settings: SettingsOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Run one system on a simulated pipeline.

    Example: [bold]foretide simulate --app twitter-linear --load twitter-smoothed --system srea[/]
    """
    told, found = _told(settings), app_named(app)
    offered = load_named(load or found.load, speed, scale)
    case = comparing.Scenario(
        found,
        offered,
        found.window_s if window_s is None else window_s,
        seed,
        told.prices,
        comparing.engine_named(engine),
        lead_s=lead_s,
        cores=cores,
    )
    _run(
        case,
        [system(system_name) if system_name else told.system.build()],
        as_json,
        report,
        processes=1,
    )


def compare(
    app: AppOption = "twitter-linear",
    load: LoadOption = None,
    systems: Annotated[
        str, typer.Option("--systems", help="names with commas between, or: all")
    ] = "all",
    speed: SpeedOption = None,
    scale: ScaleOption = 1.0,
    window_s: WindowOption = None,
    seed: SeedOption = 1,
    engine: EngineOption = "auto",
    lead_s: LeadOption = None,
    cores: CoresOption = None,
    settings: SettingsOption = None,
    processes: Annotated[
        int | None, typer.Option(help="systems run side by side; default: one per core", min=1)
    ] = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Run several systems on the same load and put their figures side by side.

    Example: [bold]foretide compare --app twitter-linear --systems srea,static --report
    compare.html[/]
    """
    told, found = _told(settings), app_named(app)
    offered = load_named(load or found.load, speed, scale)
    case = comparing.Scenario(
        found,
        offered,
        found.window_s if window_s is None else window_s,
        seed,
        told.prices,
        comparing.engine_named(engine),
        lead_s=lead_s,
        cores=cores,
    )
    own = [replace(told.system.build(), name=settings.stem)] if settings else []
    _run(case, [*_chosen(systems), *own], as_json, report, processes)


def _chosen(names: str) -> list[System]:
    if names.strip() == "all":
        return list(SYSTEMS.values())
    wanted = list(dict.fromkeys(filter(None, (n.strip() for n in names.split(",")))))
    if not wanted:
        raise InvalidConfig("--systems names nobody: give names with commas between, or 'all'")
    return [system(n) for n in wanted]


def _told(settings: Path | None) -> Settings:
    return load_settings(settings) if settings else Settings()


def _run(
    case: comparing.Scenario,
    systems: list[System],
    as_json: bool,
    report: Path | None,
    processes: int | None,
) -> None:
    with _progress() as tell:
        found = comparing.compare(case, systems, tell, processes)
    for name, why in found.left_out.items():
        labelled("left out:", "yellow", f"{name}: {why}")
    if not found.runs:
        raise InvalidConfig("no system could run here; the lines above say why")
    if report is not None:
        html.write(report, html.of_comparison(found, _command()))
    if as_json:
        sys.stdout.write(json.dumps(found.as_dict(), allow_nan=False) + "\n")
        return
    _print(found)
    if report is not None:
        say(f"report: {report}")


def _command() -> str:
    return shlex.join(["foretide", *sys.argv[1:]])


@contextmanager
def _progress() -> Iterator[comparing.Progress]:
    """A bar per system on standard error; nothing stays on the screen afterwards."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} windows"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def tell(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            said = name if done < total else f"{name}, now its figures and the optimum"
            bars.update(tasks[name], completed=done, description=said)

        yield tell


_SHOWN = {
    "cost_ratio",
    "adaptations",
    "saved_resources",
    "processed_share",
    "latency_mean_ms",
    "latency_p99_ms",
    "slo_share",
}


def _print(found: Comparison) -> None:
    case = found.conditions
    table = titled(f"{case.app} under {case.load}, window {case.window_s:g} s")
    table.add_column("system", no_wrap=True)
    shown = [f for f in FIGURES if f.key in _SHOWN]
    for figure in shown:
        table.add_column(
            figure.label if figure.form != "ms" else f"{figure.label} ms", justify="right"
        )
    for run in found.runs:
        figures = run.figures.as_dict()
        cells = {f.key: _cell(figures[f.key], f.form) for f in shown}
        if run.short is not None:
            cells["saved_resources"] = "ran short"
        table.add_row(Text(run.system), *cells.values())
    told = console()
    told.print(table)
    told.print(verdict(found.runs))


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "-"
    return {
        "share": percent(value),
        "ratio": f"{value:.2f}",
        "count": f"{value:,}",
    }.get(form) or f"{value:,.0f}"
