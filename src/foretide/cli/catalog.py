"""``foretide apps`` and ``foretide loads``: what is built in, one line each."""

from __future__ import annotations

from foretide.apps import APPS
from foretide.cli.systems import table
from foretide.load import LOADS


def list_apps() -> None:
    """List the built-in apps.

    Example: [bold]foretide apps[/]
    """
    table(
        "Apps: the papers' pipelines",
        ("app", "what it does", "operators", "default load", "window", "source"),
        (
            (a.name, a.summary, str(len(a.topology.names)), a.load, f"{a.window_s:g} s", a.source)
            for a in APPS.values()
        ),
    )


def list_loads() -> None:
    """List the built-in loads. A CSV file is a load too; a shape's parameters go into its name:
    periodic:days=60,seed=2.

    Example: [bold]foretide loads[/]
    """
    table(
        "Loads: the papers' shapes",
        ("load", "what it is", "parameters", "source"),
        (
            (p.name, p.summary, ", ".join(LOADS.constants(p.name)) or "none", p.source)
            for p in LOADS
        ),
    )
