"""``foretide demo --app``: an example with real work under the demo's load."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretide.cli.demo_live import live_run, watch, windows, with_page
from foretide.cli.out import say
from foretide.cli.run import SHARE, check_parts
from foretide.demo import WARM_UP_S
from foretide.errors import missing_extra, unknown
from foretide.examples.database import SqliteTable
from foretide.load import Load
from foretide.systems import System

if TYPE_CHECKING:
    from foretide.spark.control.live import LiveRun
    from foretide.spark.declare.pipeline import Pipeline
    from foretide.spark.run.running import Running


@dataclass(frozen=True, slots=True)
class DemoApp:
    """An example for the demo: events/s between two humps and at their top, chosen so that two
    cores can work them off, the latency target, and settings of the example.
    """

    events: str
    rest: float
    top: float
    target_s: float = 15.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    extra: str | None = None


APPS = {
    "dns": DemoApp("DNS queries", 20, 140),
    "fpd": DemoApp("posts", 0.5, 4, 30.0),
    "logs": DemoApp("log lines", 20, 120),
    "microblog": DemoApp("posts", 10, 80),
    "opinion": DemoApp("opinions", 5, 40),
    "ticks": DemoApp("ticks", 5, 40, 30.0, {"sectors": 1}),
    "vld": DemoApp("frames", 0.2, 1.2, 30.0, {}, "vision"),
    "words": DemoApp("numbers", 20, 100),
}


def example(name: str, load: Load, folder: Path) -> Pipeline:
    """The example as it ships, under another load; its tables are kept in the folder."""
    from foretide.spark import Generator

    app = APPS[name]
    try:
        module = importlib.import_module(f"foretide.examples.{name}")
        declared: Pipeline = (
            module.build(**app.settings) if hasattr(module, "build") else module.pipeline
        )
    except ModuleNotFoundError as error:
        if app.extra is None:
            raise
        raise missing_extra(app.extra, f"demo app '{name}' needs {error.name}") from error
    for source in list(declared.sources.values()):
        assert isinstance(source.open, Generator)
        opened = replace(source.open, load=load, after_s=WARM_UP_S)
        declared.sources[source.name] = replace(source, open=opened)
    for sink in declared.sinks.values():
        if isinstance(sink.write, SqliteTable):
            sink.write.path = folder / sink.write.path.name
    return declared


def between(load: Load, app: DemoApp) -> Load:
    """The demo's load, from its rest and top to those of the app."""
    from foretide.demo.tweets import REST, TOP

    share = (load.counts - REST) / (TOP - REST)
    counts = (app.rest + share * (app.top - app.rest)).clip(min=0.0)
    return replace(load, counts=counts)


def app_run(name: str, system: System, duration_s: int, folder: Path, **more: Any) -> LiveRun:
    """The run of one example under the demo's load."""
    from foretide.demo.tweets import demo_load, demo_past

    app = APPS[name]
    return live_run(
        example(name, between(demo_load(duration_s, WARM_UP_S), app), folder),
        system,
        folder,
        app.target_s,
        lambda elapsed_s: between(demo_past(elapsed_s), app),
        preload=(f"foretide.examples.{name}",),
        **more,
    )


def run_app(name: str, system: System, duration_s: int, folder: Path, port: int) -> None:
    """Run the example until its load is done; the summary is the demo's."""
    if name not in APPS:
        raise unknown("demo app", name, APPS)
    app = APPS[name]
    system = system.promised(app.target_s, SHARE)
    check_parts(system)
    importlib.import_module("foretide.spark")  # says what to install where Spark is missing
    counted: dict[str, int] = {}
    live = app_run(name, system, duration_s, folder, spark_settings=with_page())
    operators = len(live.pipeline.steps)
    watch(
        live,
        windows(duration_s),
        port,
        f"Starting Spark with {operators} operators; {duration_s} s of {app.events} follow ...",
        lambda running: counted.update(in_and_out(running)),
    )
    say(f"{app.events} in: {counted['in']:,}; events at the sinks: {counted['out']:,}")
    say(f"journal: {live.journal}; look again: foretide dashboard {folder}")


def in_and_out(running: Running) -> dict[str, int]:
    """Events that the operators at the sources took, and those delivered to sinks."""
    accounts, topology = running.accounts, running.topology
    delivered = {n: accounts.latest(n).delivered for n in topology.names}
    return {
        "in": sum(accounts.consumed(n) for n in topology.sources),
        "out": sum(
            n for held in delivered.values() for to, n in held.items() if to.startswith("sink.")
        ),
    }
