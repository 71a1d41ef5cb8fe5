"""``foretide simulate`` and ``foretide compare``: systems on an app under a load, without Spark."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from foretide import report as html
from foretide.cli.out import check_writable, console, labelled, say, titled
from foretide.cli.pretrained import PretrainedOption, with_file
from foretide.cli.progress import QUICK_WINDOWS, progress, warn_if_slow
from foretide.cli.run import ShareOption
from foretide.cli.scenario import DEFAULT_APP, Options, build
from foretide.config import Settings, load_settings
from foretide.errors import InvalidConfig
from foretide.figures.comparison import Comparison
from foretide.jit import is_compiled
from foretide.load import CsvFormat
from foretide.load import load as load_named
from foretide.model import Prices
from foretide.report.words import FIGURES, verdict
from foretide.sim import compare as comparing
from foretide.sim.fast import fast as cheap
from foretide.systems import SYSTEMS, System
from foretide.systems import system as named
from foretide.wording import percent, plural

AppOption = Annotated[
    str | None,
    typer.Option(
        "--app",
        help="an app (see: foretide apps), a run's folder, or MODULE:PIPELINE, which is profiled "
        f"({DEFAULT_APP})",
    ),
]
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
TimeColumnOption = Annotated[str | None, typer.Option(help="the CSV file's column of time stamps")]
CountColumnOption = Annotated[str | None, typer.Option(help="its column of events per row")]
RateColumnOption = Annotated[str | None, typer.Option(help="its column of events per second")]
UnitOption = Annotated[
    str | None, typer.Option(help="unit of numeric time stamps: s, ms, us or ns; default: guessed")
]
WindowOption = Annotated[
    float | None, typer.Option("--window", help="seconds between two plans; default: the app's own")
]
TargetOption = Annotated[
    float | None, typer.Option("--target", help="latency target in seconds; default: the app's own")
]
PriceOption = Annotated[
    str | None, typer.Option(help="what a replica costs, as 0.19/h; starts and stops in proportion")
]
ProfileOption = Annotated[
    float, typer.Option("--profile", help="seconds that MODULE:PIPELINE is profiled for", min=10)
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
WarmUpOption = Annotated[
    float,
    typer.Option("--warm-up", help="seconds of the load that systems only learn from", min=0),
]
HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history", help="a CSV file with the load before this one: known from the first window"
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
SystemOption = Annotated[
    str | None,
    typer.Option("--system", help="the system that scales; see: foretide systems (foretide)"),
]
SystemsOption = Annotated[str, typer.Option("--systems", help="names with commas between, or: all")]
ProcessesOption = Annotated[
    int | None, typer.Option(help="systems run side by side; default: one per core", min=1)
]
QuickOption = Annotated[
    bool, typer.Option("--quick", help=f"only the last {QUICK_WINDOWS:,} windows of the load")
]
FastOption = Annotated[
    bool,
    typer.Option("--fast", help="long loads: measure, forecast and train less often where it pays"),
]


def simulate(
    app: AppOption = None,
    load: LoadOption = None,
    system_name: SystemOption = None,
    speed: SpeedOption = None,
    scale: ScaleOption = 1.0,
    time_column: TimeColumnOption = None,
    count_column: CountColumnOption = None,
    rate_column: RateColumnOption = None,
    unit: UnitOption = None,
    window_s: WindowOption = None,
    target_s: TargetOption = None,
    share: ShareOption = None,
    price: PriceOption = None,
    profile_s: ProfileOption = 60.0,
    seed: SeedOption = 1,
    engine: EngineOption = "auto",
    lead_s: LeadOption = None,
    cores: CoresOption = None,
    warm_up_s: WarmUpOption = 0.0,
    history: HistoryOption = None,
    pretrained: PretrainedOption = None,
    settings: SettingsOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Run one system on a simulated pipeline.

    Example: [bold]foretide simulate --app twitter-linear --load twitter-smoothed --system srea[/]
    """
    own = _settings(settings)
    system = named(system_name) if system_name else own.system.build()
    form = CsvFormat(time_column, count_column, rate_column, unit)
    options = Options(
        app, load, speed, scale, form, window_s, seed, engine, lead_s, cores, target_s, price,
        profile_s, pretrained=pretrained, warm_up_s=warm_up_s, history=history,
        share=own.share if share is None else share,
    )  # fmt: skip
    _run(options, own.prices, [system], as_json, report, processes=1)


def compare(
    app: AppOption = None,
    load: LoadOption = None,
    systems: SystemsOption = "all",
    speed: SpeedOption = None,
    scale: ScaleOption = 1.0,
    time_column: TimeColumnOption = None,
    count_column: CountColumnOption = None,
    rate_column: RateColumnOption = None,
    unit: UnitOption = None,
    window_s: WindowOption = None,
    target_s: TargetOption = None,
    share: ShareOption = None,
    price: PriceOption = None,
    profile_s: ProfileOption = 60.0,
    quick: QuickOption = False,
    fast: FastOption = False,
    seed: SeedOption = 1,
    engine: EngineOption = "auto",
    lead_s: LeadOption = None,
    cores: CoresOption = None,
    warm_up_s: WarmUpOption = 0.0,
    history: HistoryOption = None,
    settings: SettingsOption = None,
    processes: ProcessesOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Run several systems on the same load and put their figures side by side.

    Example: [bold]foretide compare --app twitter-linear --systems srea,static --report
    compare.html[/]
    """
    own = _settings(settings)
    extra = [replace(own.system.build(), name=settings.stem)] if settings else []
    form = CsvFormat(time_column, count_column, rate_column, unit)
    options = Options(
        app, load, speed, scale, form, window_s, seed, engine, lead_s, cores, target_s, price,
        profile_s, quick, warm_up_s=warm_up_s, history=history,
        share=own.share if share is None else share,
    )  # fmt: skip
    _run(options, own.prices, [*systems_named(systems), *extra], as_json, report, processes, fast)


def systems_named(names: str) -> list[System]:
    """The systems in a list with commas between, or all of them."""
    if names.strip() == "all":
        return list(SYSTEMS.values())
    wanted = list(dict.fromkeys(filter(None, (n.strip() for n in names.split(",")))))
    if not wanted:
        raise InvalidConfig("--systems is empty: give names with commas between, or 'all'")
    return [named(n) for n in wanted]


def _settings(path: Path | None) -> Settings:
    return load_settings(path) if path else Settings()


def _run(
    options: Options,
    prices: Prices,
    systems: list[System],
    as_json: bool,
    report: Path | None,
    processes: int | None,
    fast: bool = False,
) -> None:
    if report is not None:
        check_writable(report)
    scenario = build(options, prices)
    note_conditions(options, scenario)
    target_s = scenario.app.target_latency_s
    systems = [
        s.promised(target_s) if s.keeps_promises or options.target_s is not None else s
        for s in systems
    ]
    if options.pretrained is not None:
        systems = [_pretrained(s, options.pretrained, scenario.window_s) for s in systems]
    if options.history is not None:
        systems = _with_past(systems, options, scenario)
    note_if_alike(scenario, systems)
    if fast:
        systems = _cheaper(systems, scenario)
    warn_if_slow(scenario, systems, fast=fast)
    with progress() as report_progress:
        comparison = comparing.compare(scenario, systems, report_progress, processes)
    for name, why in comparison.left_out.items():
        labelled("left out:", "yellow", f"{name}: {why}")
    if not comparison.runs:
        raise InvalidConfig("no system could run here; the lines above say why")
    if report is not None:
        html.write(report, html.of_comparison(comparison, _command()))
    if as_json:
        sys.stdout.write(json.dumps(comparison.as_dict(), allow_nan=False) + "\n")
        return
    _print(comparison, in_money=options.price is not None)
    if report is not None:
        say(f"report: {report}")


def _pretrained(system: System, file: Path, window_s: float) -> System:
    changed, trained = with_file(system, file, window_s)
    return changed.remembering(trained.past.rates(window_s))


def _with_past(
    systems: list[System], options: Options, scenario: comparing.Scenario
) -> list[System]:
    """The systems with the load of ``--history``, in the same units as the load that is run."""
    past = load_named(str(options.history), options.speed, options.scale, options.form)
    rates = past.rates(scenario.window_s)
    if not len(rates):
        raise InvalidConfig(
            f"--history {options.history} lasts {past.duration_s:g} s, less than a window of "
            f"{scenario.window_s:g} s: give more of the load before, or a shorter --window"
        )
    known = plural(len(rates), "window")
    labelled("history:", "cyan", f"systems that learn from a past know {known} before the load.")
    return [s.remembering(rates) for s in systems]


def note_conditions(options: Options, scenario: comparing.Scenario) -> None:
    """Say what a newcomer would wonder about: whose pipeline it is, how long windows are, and why
    nothing happens at first.
    """
    load, window_s = scenario.load, scenario.window_s
    if options.app is None and options.load is not None and Path(options.load).is_file():
        labelled(
            "note:",
            "cyan",
            f"without --app this load runs through {scenario.app.name}, a built-in app. For yours: "
            "--app runs/NAME, the folder of a recorded run.",
        )
    if options.window_s is None and load.interval_s >= 2 * window_s:
        labelled(
            "note:",
            "cyan",
            f"the load has a row every {load.interval_s:g} s and the window is {window_s:g} s: "
            f"--window {load.interval_s:g} takes {load.interval_s / window_s:.0f} times fewer "
            f"windows than {scenario.windows:,}.",
        )
    if not is_compiled("sim"):
        labelled("note:", "cyan", "the simulator is compiled first: half a minute, this once.")


def note_if_alike(scenario: comparing.Scenario, systems: list[System]) -> None:
    """Say so before a comparison in which no system can differ."""
    if len(systems) > 1 and all(need.max() == need.min() for need in scenario.needs().values()):
        most = max(int(need.max()) for need in scenario.needs().values())
        labelled(
            "note:",
            "yellow",
            f"this load needs the same replicas all the time ({plural(most, 'replica')} per "
            f"operator at most; its peak is {scenario.load.peak:,.0f} events/s): there is nothing "
            "to scale. Try --scale 10, or --app runs/NAME for the twin of a pipeline of yours.",
        )


def _cheaper(systems: list[System], scenario: comparing.Scenario) -> list[System]:
    """The systems as ``--fast`` runs them; what differs is said."""
    cheaper = [cheap(s, scenario.windows, scenario.window_s) for s in systems]
    for _, sentence in cheaper:
        if sentence:
            labelled("fast:", "cyan", sentence)
    return [s for s, _ in cheaper]


def _command() -> str:
    return shlex.join(["foretide", *sys.argv[1:]])


_SHOWN = {
    "cost_ratio",
    "adaptations",
    "saved_cost",
    "processed_share",
    "latency_mean_ms",
    "latency_p99_ms",
    "slo_share",
}


def _print(comparison: Comparison, in_money: bool = False) -> None:
    conditions = comparison.conditions
    title = f"{conditions.app} under {conditions.load}, window {conditions.window_s:g} s"
    if conditions.warm_up_s:
        title += f", after {conditions.warm_up_s:g} s"
    table = titled(title)
    table.add_column("system", no_wrap=True)
    shown = [f for f in FIGURES if f.key in _SHOWN or (in_money and f.key == "cost")]
    for figure in shown:
        table.add_column(
            figure.label if figure.form != "ms" else f"{figure.label} ms", justify="right"
        )
    for run in comparison.runs:
        figures = run.figures.as_dict()
        cells = {f.key: _cell(figures[f.key], f.form) for f in shown}
        if run.short is not None:
            cells["saved_cost"] = "ran short"
        table.add_row(Text(run.system), *cells.values())
    screen = console()
    screen.print(table)
    screen.print(verdict(comparison.runs))
    for run in comparison.runs:
        if run.priced:
            say(f"{run.system}: {run.priced}.")


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "-"
    return {
        "share": percent(value),
        "ratio": f"{value:.2f}",
        "money": f"{value:,.2f}" if value < 1e6 else f"{value:,.0f}",
        "count": f"{value:,}",
    }.get(form) or f"{value:,.0f}"
