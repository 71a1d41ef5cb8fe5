"""``foretide calibrate``: a recorded run as a twin, operator by operator."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from foretide.cli.out import say
from foretide.cli.scenario import twin_of
from foretide.cli.systems import table
from foretide.errors import InvalidConfig


def command(
    run: Annotated[Path, typer.Argument(help="a run's folder, or a journal file")],
    as_json: Annotated[
        bool, typer.Option("--json", help="one JSON object on standard output, nothing else")
    ] = False,
) -> None:
    """Fit a twin to a recorded run: what compare --app RUN simulates.

    Example: [bold]foretide calibrate runs/demo[/]
    """
    file = run / "journal.jsonl" if run.is_dir() else run
    if not file.is_file():
        raise InvalidConfig(f"{file} is not there: give the folder of a run, or its journal")
    ran, twin, load = twin_of(file)
    visits = twin.app.visits()
    operators = [
        {
            "operator": name,
            "service_ms": 1e3 * twin.app.service_s(name),
            "law": twin.app.service[name].law,
            "visits": visits[name],
            "batch_overhead_s": twin.costs.overheads_s[name],
        }
        for name in twin.app.topology.names
    ]
    if as_json:
        fields = {"run": ran.name, "window_s": twin.window_s, "operators": operators}
        sys.stdout.write(json.dumps(fields, allow_nan=False) + "\n")
        return
    table(
        f"Twin of {ran.name}, {load.duration_s:.0f} s recorded, {load.total:,.0f} events",
        ("operator", "ms per event", "variation", "events per input", "s per batch"),
        (
            (
                str(o["operator"]),
                f"{o['service_ms']:.2f}",
                str(o["law"]),
                f"{o['visits']:.2f}",
                f"{o['batch_overhead_s']:.2f}",
            )
            for o in operators
        ),
    )
    say(f"Try systems on it: foretide compare --app {run}")
