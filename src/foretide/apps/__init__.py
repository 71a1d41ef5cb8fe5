"""Topologies of the papers with service times and selectivities, for the simulator and for
``foretide run --app``. One module per paper.
"""

from __future__ import annotations

from foretide.apps import dabs_storm, drs, fugu, pa_sps
from foretide.apps.app import App, Service, Values
from foretide.errors import unknown

APPS: dict[str, App] = {
    a.name: a for module in (pa_sps, dabs_storm, drs, fugu) for a in module.APPS
}


def app(name: str) -> App:
    """A built-in app by name."""
    if name not in APPS:
        raise unknown("app", name, APPS)
    return APPS[name]


__all__ = ["APPS", "App", "Service", "Values", "app"]
