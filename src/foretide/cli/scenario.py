"""From options to a scenario: which app (built in, a recorded run, or a pipeline profiled now),
which load, which prices.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foretide import journal
from foretide.apps import APPS, App
from foretide.apps import app as app_named
from foretide.cli.out import labelled
from foretide.cli.progress import QUICK_WINDOWS
from foretide.errors import ForetideError, InvalidConfig, unknown
from foretide.figures.account import PROMISED
from foretide.load import CsvFormat, Load
from foretide.load import load as load_named
from foretide.model import Prices
from foretide.sim.calibrate import Twin, calibrate, load_of
from foretide.sim.compare import Scenario, engine_named
from foretide.systems import system

DEFAULT_APP = "twitter-linear"
WARM_UP_S = 30.0
PROFILE_WINDOW_S = 5.0
_PER_SECOND = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Options:
    """What the command line says about a scenario; None is left to the app or to the settings."""

    app: str | None = None
    load: str | None = None
    speed: float | None = None
    scale: float = 1.0
    form: CsvFormat = field(default_factory=CsvFormat)
    window_s: float | None = None
    seed: int = 1
    engine: str = "auto"
    lead_s: float | None = None
    cores: int | None = None
    target_s: float | None = None
    price: str | None = None
    profile_s: float = 60.0
    quick: bool = False
    pretrained: Path | None = None
    warm_up_s: float = 0.0
    share: float | None = None
    history: Path | None = None


@dataclass(frozen=True)
class Target:
    """An app to simulate, the load it ran under where one was recorded, and how to simulate it."""

    app: App
    load: Load | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def build(options: Options, prices: Prices) -> Scenario:
    """The scenario that the options describe; ``prices`` unless ``--price`` is given."""
    engine = engine_named(options.engine)
    to = target(options.app or DEFAULT_APP, options.profile_s)
    app = to.app
    if options.target_s is not None:
        if not 0 < options.target_s < float("inf"):
            raise InvalidConfig(
                f"--target {options.target_s:g}: the latency target is more than 0 seconds"
            )
        app = replace(app, target_latency_s=options.target_s)
    share = PROMISED if options.share is None else options.share
    if not 0 < share < 1:
        raise InvalidConfig(f"--share {share:g}: give a number between 0 and 1, as 0.95")
    load = offered(options.load, to, options.speed, options.scale, options.form)
    window_s = app.window_s if options.window_s is None else options.window_s
    if options.quick:
        load = load.last(QUICK_WINDOWS * window_s)
    return Scenario(
        app,
        load,
        window_s,
        options.seed,
        prices if options.price is None else money(options.price),
        "batch" if engine == "auto" and to.options else engine,
        options=to.options,
        lead_s=options.lead_s,
        cores=options.cores,
        share=share,
        warm_up_s=options.warm_up_s,
    )


def target(name: str, profile_s: float) -> Target:
    """What ``--app`` names: an app, a run's folder or journal, or MODULE:PIPELINE."""
    path = Path(name)
    if name in APPS:
        return Target(app_named(name))
    if path.is_dir() or path.suffix == ".jsonl":
        return recorded(path)
    if ":" in name:
        return profiled(name, profile_s)
    if path.exists() or len(path.parts) > 1:
        raise InvalidConfig(
            f"--app {name}: give an app's name, a run's folder, or MODULE:PIPELINE (FILE.py:NAME)"
        )
    raise unknown("app", name, APPS)


def recorded(path: Path) -> Target:
    """The twin of a recorded run, under the load of that run."""
    file = path / "journal.jsonl" if path.is_dir() else path
    if not file.is_file():
        raise InvalidConfig(f"--app {path}: there is no journal {file}; give the folder of a run")
    run, twin, load = twin_of(file)
    app = replace(
        twin.app,
        name=run.name,
        summary=f"twin of {path}",
        target_latency_s=run.target_latency_s or twin.app.target_latency_s,
    )
    return Target(app, load, {"batch": twin.costs})


def twin_of(file: Path) -> tuple[journal.Run, Twin, Load]:
    """A run, its twin and the load that came, without the warm-up."""
    run, decisions = journal.read(file)
    windows = [
        d.snapshot
        for d in decisions
        if d.snapshot is not None and set(d.snapshot.samples) == set(run.topology.names)
    ]
    length_s = sum(w.window_s for w in windows)
    after_s = min(WARM_UP_S, length_s / 4)
    trigger_s = float(run.settings.get("trigger_s", 1.0))
    twin = calibrate(file, trigger_s=trigger_s, after_s=after_s)
    load = load_of(run.topology, windows)
    return run, twin, replace(load, name=f"as recorded in {file}", started_at=run.started_at)


def profiled(name: str, seconds: float) -> Target:
    """The twin of a pipeline that runs on local Spark for a while first, advised and not
    changed.
    """
    from foretide.spark.control.live import LiveRun, find_pipeline

    declared = find_pipeline(name)
    declared.topology()
    labelled("profile:", "cyan", f"{name} runs on local Spark for {seconds:g} s ...")
    with tempfile.TemporaryDirectory(prefix="foretide-profile-") as folder:
        live = LiveRun(declared, system("srea"), Path(folder), "advise", PROFILE_WINDOW_S)
        live.go(steps=max(4, round(seconds / PROFILE_WINDOW_S)))
        try:
            profile = recorded(Path(folder))
        except ForetideError as error:
            raise InvalidConfig(f"{name} cannot be profiled: {error}") from error
    return replace(profile, app=replace(profile.app, summary=f"profile of {name}"))


def offered(
    asked: str | None, to: Target, speed: float | None, scale: float, form: CsvFormat
) -> Load:
    """The load asked for, else the recorded one, else the app's own; what was guessed is said."""
    if asked is None and to.load is not None:
        return to.load.scaled(scale, speed)
    load = load_named(asked or to.app.load, speed, scale, form)
    for note in load.notes:
        labelled("note:", "cyan", note)
    return load


def money(text: str) -> Prices:
    """Prices in money from the price of a replica: ``0.19/h``, ``4.5/d``, ``0.0001/s``.

    A start, a stop and a re-routing keep their published proportion to a second of a replica.

    >>> round(money("0.36/h").replica_second, 6)
    0.0001
    """
    match = re.fullmatch(r"([0-9.eE+-]+)\s*/\s*(s|min|h|d)", text.strip())
    try:
        amount = float(match[1]) if match else float("nan")
    except ValueError:
        amount = float("nan")
    if match is None or not 0 < amount < float("inf"):
        raise InvalidConfig(
            f"--price {text}: write the price of a replica as 0.19/h (s, min, h, d)"
        )
    second, published = amount / _PER_SECOND[match[2]], Prices()
    factor = second / published.replica_second
    return Prices(second, published.up * factor, published.down * factor, published.route * factor)
