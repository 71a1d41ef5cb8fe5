"""``foretide run``: a user's own pipeline under the loop."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console

from foretide import examples
from foretide.apps import app as app_named
from foretide.cli import report
from foretide.cli.live import sentences, spark_settings, usable_folder
from foretide.cli.out import labelled, say
from foretide.cli.pretrained import PretrainedOption, with_past
from foretide.cli.profile import read_profile
from foretide.cli.screen import Screen, summary
from foretide.config import Settings, load_settings
from foretide.demo import MARKER
from foretide.errors import InvalidConfig, unknown
from foretide.load import load as load_named
from foretide.systems import System

if TYPE_CHECKING:
    from foretide.spark.control.live import LiveRun
    from foretide.spark.declare.pipeline import Pipeline

SYSTEM = "foretide"
SHARE = 0.99
SHORTEST_WINDOW_S = 0.5
DESCRIBED = "foretide.spark.declare.described"
STOPPING = "stopping: batches under way end first, at most 10 s; Ctrl-C again does not wait."


def _mode(mode: str | None) -> str | None:
    if mode not in (None, "advise", "act"):
        raise typer.BadParameter(f"'{mode}' is not a mode: advise or act", param_hint="--mode")
    return mode


PipelineArgument = Annotated[
    str | None,
    typer.Argument(
        help="MODULE:PIPELINE or FILE.py:PIPELINE; or give --app", metavar="[MODULE:PIPELINE]"
    ),
]
AppOption = Annotated[
    str | None, typer.Option(help="a built-in app instead of a pipeline; see: foretide apps")
]
LoadOption = Annotated[
    str | None, typer.Option(help="the load of --app, a name or a CSV file (default: its own)")
]
WorkOption = Annotated[
    str,
    typer.Option(
        help="operators of --app wait (a slot) or burn (a core) their service time",
        metavar="wait|burn",
    ),
]
SystemOption = Annotated[
    str | None, typer.Option(help=f"the system that scales; see: foretide systems ({SYSTEM})")
]
ModeOption = Annotated[
    str | None,
    typer.Option(
        help="advise: only say what it would do; act: do it (advise)",
        metavar="advise|act",
        callback=_mode,
    ),
]
WindowOption = Annotated[
    float | None,
    typer.Option(help="seconds between two steps of the loop (10)", min=SHORTEST_WINDOW_S),
]
WindowsOption = Annotated[
    int | None, typer.Option(help="stop after so many windows (default: run until Ctrl-C)", min=1)
]
TargetOption = Annotated[float | None, typer.Option(help="latency target in seconds, end to end")]
ShareOption = Annotated[
    float | None, typer.Option(help="share of events promised within the target (0.99)")
]
ForecasterOption = Annotated[
    str | None, typer.Option(help="another forecaster; see: foretide models")
]
QuantileOption = Annotated[
    float | None, typer.Option(help="plan for this quantile of the forecast, as 0.95")
]
MasterOption = Annotated[
    str, typer.Option(help="Spark master: local[SLOTS], spark://..., yarn, k8s://...")
]
PackagesOption = Annotated[
    str | None, typer.Option(help="Spark packages: GROUP:ARTIFACT:VERSION, with commas between")
]
ConfOption = Annotated[
    list[str] | None, typer.Option(help="a Spark setting, KEY=VALUE; may be repeated")
]
SpeedOption = Annotated[
    float | None,
    typer.Option(help="rows of generated loads per second of run time; default: as declared"),
]
ScaleOption = Annotated[float, typer.Option(help="factor on the counts of generated loads")]
FolderOption = Annotated[
    str | None, typer.Option(help="where the run is kept (default: runs/<pipeline's name>)")
]
HistoryOption = Annotated[
    Path | None,
    typer.Option(help="a CSV file with the load of earlier days: known from the first window"),
]
SettingsOption = Annotated[
    Path | None, typer.Option(help="a TOML file, or: careful; options here go before it")
]
DashboardOption = Annotated[
    bool, typer.Option("--dashboard", help="serve the live page next to the run")
]
ProfileOption = Annotated[
    Path | None, typer.Option(help="service times that foretide profile measured: the least taken")
]
PoolOption = Annotated[
    int | None, typer.Option(help="slots that are kept ready for every operator's replicas", min=1)
]
PortOption = Annotated[
    int, typer.Option(help="the dashboard's port; the next free one if taken", min=0, max=65535)
]


def command(
    pipeline: PipelineArgument = None,
    app: AppOption = None,
    load: LoadOption = None,
    work: WorkOption = "wait",
    system: SystemOption = None,
    mode: ModeOption = None,
    window: WindowOption = None,
    windows: WindowsOption = None,
    target: TargetOption = None,
    share: ShareOption = None,
    forecaster: ForecasterOption = None,
    quantile: QuantileOption = None,
    master: MasterOption = "local[32]",
    packages: PackagesOption = None,
    conf: ConfOption = None,
    speed: SpeedOption = None,
    scale: ScaleOption = 1.0,
    folder: FolderOption = None,
    history: HistoryOption = None,
    pretrained: PretrainedOption = None,
    profile: ProfileOption = None,
    pool: PoolOption = None,
    settings: SettingsOption = None,
    dashboard: DashboardOption = False,
    port: PortOption = 8765,
) -> None:
    """Run your pipeline, or a built-in app, under the loop.

    Examples: [bold]foretide run foretide.examples.words:pipeline --mode act --target 10[/],
    [bold]foretide run --app chain --system drs --mode act --target 8[/]
    """
    asked = load_settings(settings_file(settings)) if settings else Settings()
    parts = given(name=system, forecaster=forecaster, quantile=quantile)
    changes = given(mode=mode, window_s=window, target_latency_s=target, share=share)
    asked = changed(asked, changes, parts)
    promise = SHARE if asked.share is None else asked.share
    scaler = asked.system.build(SYSTEM).promised(asked.target_latency_s, promise)
    scaler, past = with_past(scaler, history, pretrained, asked.window_s, forecaster)
    check_parts(scaler)
    note_target(scaler, asked.target_latency_s)
    from foretide.spark.control.live import LiveRun  # imported when it is needed

    declared = the_pipeline(pipeline, AppChoice(app, load, work), speed, scale)
    place = folder_of(folder if folder is not None else Path(asked.runs_dir) / declared.name)
    live = LiveRun(
        declared,
        scaler,
        place,
        *(asked.mode, asked.window_s, asked.target_latency_s, master),
        prices=asked.prices,
        share=promise if scaler.keeps_promises else asked.share,
        spark_settings=spark_settings(packages, conf or [], with_page=dashboard),
        past=past,
        profile=read_profile(profile, declared.name) if profile else {},
        pool=pool,
        preload=() if app is None else (DESCRIBED,),
    )
    go(live, windows, port if dashboard else None)


@dataclass(frozen=True)
class AppChoice:
    """What ``--app``, ``--load`` and ``--work`` say."""

    name: str | None = None
    load: str | None = None
    work: str = "wait"


def the_pipeline(
    name: str | None, choice: AppChoice, speed: float | None, scale: float
) -> Pipeline:
    """The user's pipeline, or a built-in app as one."""
    if name is not None and choice.name is not None:
        raise InvalidConfig(f"give a pipeline ({name}) or --app {choice.name}, not both")
    if choice.name is not None:
        return described_pipeline(choice, speed, scale)
    if name is None:
        raise InvalidConfig(
            "nothing to run: give MODULE:PIPELINE, or --app NAME (foretide apps lists them)"
        )
    if choice.load is not None or choice.work != "wait":
        raise InvalidConfig(
            "--load and --work go with --app: a pipeline declares its own sources and its work"
        )
    return declared_pipeline(name, speed, scale)


def described_pipeline(choice: AppChoice, speed: float | None, scale: float) -> Pipeline:
    """A built-in app as a pipeline under its own load, or under the one of ``--load``."""
    from foretide.spark.declare.described import WORK, described

    app = app_named(choice.name or "")
    if choice.work not in WORK:
        raise unknown("--work", choice.work, WORK)
    load = load_named(choice.load or app.load, speed, scale)
    for note in load.notes:
        labelled("note:", "cyan", note)
    return described(app, load, WORK[choice.work])


def declared_pipeline(name: str, speed: float | None, scale: float) -> Pipeline:
    """The pipeline of that name, checked: what is wrong with its graph is said before Spark
    starts.
    """
    from foretide.spark.control.live import find_pipeline

    declared = find_pipeline(name)
    if speed is not None or scale != 1.0:
        declared.rescale(scale, speed)
    declared.topology()
    for source in declared.sources.values():
        if source.stamp is None:
            labelled(
                "note:",
                "cyan",
                f"source '{source.name}' has no stamp: latency counts from when a batch takes an "
                "event, without what it waited before; name the column with its time: "
                "stamp='timestamp'",
            )
    return declared


def folder_of(place: Path | str) -> Path:
    """The folder of a run, which is not the demo's."""
    if (Path(place) / MARKER).exists():
        raise InvalidConfig(
            f"--folder {place} belongs to foretide demo, which removes it: choose another"
        )
    return usable_folder(place)


def go(live: LiveRun, windows: int | None, port: int | None) -> None:
    """The run on the terminal, from the first line to the report; with a port, beside a
    dashboard.
    """
    with ExitStack() as beside:
        if port is not None:
            serve_beside(beside, live.journal, port)
        say("Starting Spark; the first start on a machine takes longer ...")
        screen = beside.enter_context(Screen(Console()))
        beside.enter_context(sentences(live.folder))
        try:
            ran, decisions = live.go(
                screen.show, windows, started=screen.started, stopping=lambda: say(STOPPING)
            )
        except KeyboardInterrupt:
            say("ended without waiting; batches under way come again at the next start.")
            raise typer.Exit(130) from None
    say(summary(ran, decisions))
    say(f"journal: {live.journal}")
    report.close(live.journal)


def serve_beside(beside: ExitStack, journal: Path, port: int) -> None:
    """Serve the live page until the stack closes, and say where."""
    from foretide.demo import free_port
    from foretide.web import serve

    free = free_port(port)
    site = beside.enter_context(serve(journal, port=free))
    taken = f" (port {port} is taken)" if free != port else ""
    say(f"dashboard: {site.url}{taken}; token for the advise/act switch: {site.token}")


def settings_file(path: Path) -> Path | str:
    """The file, or the settings of that name which ship with the package.

    >>> str(settings_file(Path("careful"))).endswith("careful.toml")
    True
    """
    name = path.name if path.suffix == ".toml" else f"{path.name}.toml"
    if path.exists() or len(path.parts) > 1 or name not in examples.names():
        return path
    return examples.path(name)


def changed(asked: Settings, run: dict[str, Any], system: dict[str, Any]) -> Settings:
    """Settings with the options of the command line, checked."""
    parts = msgspec.structs.replace(asked.system, **system)
    asked = msgspec.structs.replace(asked, **run, system=parts)
    _check(asked)
    return asked


def given(**options: Any) -> dict[str, Any]:
    """The options that were given.

    >>> given(mode="act", window_s=None)
    {'mode': 'act'}
    """
    return {name: value for name, value in options.items() if value is not None}


def note_target(system: System, target_s: float | None) -> None:
    """Say so when the system does not plan for a target that is set."""
    if target_s is not None and not system.takes_target:
        say(
            f"system '{system.name}' has no latency target: {target_s:g} s is only measured "
            "against; 'foretide', 'drs' and 'attach' plan for it"
        )


def check_parts(system: System) -> None:
    """Raise for a part that cannot be built, such as one whose extra is not installed."""
    system.new_forecaster()
    system.new_planner()
    system.new_guards()


def _check(settings: Settings) -> None:
    if settings.window_s < SHORTEST_WINDOW_S:
        raise InvalidConfig(
            f"a window of {settings.window_s:g} s is too short: give {SHORTEST_WINDOW_S:g} s or "
            f"more"
        )
    target_s, share, quantile = settings.target_latency_s, settings.share, settings.system.quantile
    if target_s is not None and not 0 < target_s < float("inf"):
        raise InvalidConfig(f"--target {target_s:g}: the latency target is more than 0 seconds")
    for option, value in (("--share", share), ("--quantile", quantile)):
        if value is not None and not 0 < value < 1:
            raise InvalidConfig(f"{option} {value:g}: give a number between 0 and 1, as 0.95")
