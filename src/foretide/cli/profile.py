"""``foretide profile``: what an event costs at each operator, measured before a pipeline is
deployed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from foretide.cli.out import labelled, say
from foretide.cli.systems import table
from foretide.errors import InvalidConfig
from foretide.files import replace_file
from foretide.model import Decision
from foretide.systems import system

KIND = "foretide profile"
WINDOW_S = 5.0


class Measured(msgspec.Struct, frozen=True):
    """Busy seconds of a replica per event, and the events that were measured."""

    service_time_s: float
    events: float


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of a profile. An operator that processed nothing is not in it."""

    kind: str
    pipeline: str
    operators: dict[str, Measured]


def command(
    pipeline: Annotated[str, typer.Argument(help="MODULE:PIPELINE or FILE.py:PIPELINE")],
    out: Annotated[Path, typer.Option("-o", "--out", help="the file to write")],
    seconds: Annotated[float, typer.Option(help="how long it runs", min=10)] = 60.0,
) -> None:
    """Measure a pipeline's service times on local Spark, for run --profile.

    Its sinks are written to, as in any run.

    Example: [bold]foretide profile foretide.examples.words:pipeline -o words.json[/]
    """
    from foretide.spark.control.live import LiveRun, find_pipeline

    if not out.parent.is_dir():
        raise InvalidConfig(f"-o {out}: there is no directory {out.parent}")
    declared = find_pipeline(pipeline)
    declared.topology()
    labelled("profile:", "cyan", f"{pipeline} runs on local Spark for {seconds:g} s ...")
    with tempfile.TemporaryDirectory(prefix="foretide-profile-") as folder:
        live = LiveRun(declared, system("static"), Path(folder), "advise", WINDOW_S)
        _, decisions = live.go(steps=max(2, round(seconds / WINDOW_S)))
    profile = profile_of(declared.name, decisions)
    idle = sorted(set(declared.topology().names) - set(profile.operators))
    if idle:
        labelled("note:", "cyan", f"{', '.join(idle)} processed no event and is not in the profile")
    if not profile.operators:
        raise InvalidConfig(f"no operator of {pipeline} processed an event in {seconds:g} s")
    write_profile(out, profile)
    table(
        f"Profile of {profile.pipeline}",
        ("operator", "ms per event", "events"),
        (
            (name, f"{m.service_time_s * 1e3:.3f}", f"{m.events:,.0f}")
            for name, m in profile.operators.items()
        ),
    )
    say(f"use it: foretide run {pipeline} --profile {out}")


def profile_of(pipeline: str, decisions: Sequence[Decision]) -> Profile:
    """Busy seconds per event over all windows of a run."""
    busy_s: dict[str, float] = {}
    events: dict[str, float] = {}
    for snapshot in (d.snapshot for d in decisions if d.snapshot is not None):
        for name, sample in snapshot.samples.items():
            if sample.busy_s is not None and sample.processed > 0:
                busy_s[name] = busy_s.get(name, 0.0) + sample.busy_s
                events[name] = events.get(name, 0.0) + sample.processed
    return Profile(KIND, pipeline, {n: Measured(busy_s[n] / events[n], events[n]) for n in events})


def write_profile(path: Path, profile: Profile) -> None:
    """Replace the file whole."""
    try:
        replace_file(path, msgspec.json.format(msgspec.json.encode(profile), indent=1))
    except OSError as error:
        raise InvalidConfig(f"cannot write {path}: {error.strerror}") from error


def read_profile(path: Path, pipeline: str) -> dict[str, float]:
    """Seconds per event and operator. Raises InvalidConfig for a file that is not the pipeline's
    profile.
    """
    try:
        profile = msgspec.json.decode(path.read_bytes(), type=Profile)
    except OSError as error:
        raise InvalidConfig(f"cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InvalidConfig(
            f"{path} is not a profile ({error}): write one with foretide profile PIPELINE -o FILE"
        ) from error
    if profile.kind != KIND or profile.pipeline != pipeline:
        raise InvalidConfig(
            f"{path} is the profile of '{profile.pipeline}', not of '{pipeline}': profile this one"
        )
    times = {name: m.service_time_s for name, m in profile.operators.items()}
    if bad := [name for name, s in times.items() if not 0 < s < float("inf")]:
        raise InvalidConfig(f"{path}: the service time of '{bad[0]}' must be more than 0 s")
    return times
