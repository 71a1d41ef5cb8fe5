"""The app of FUGU: 35 windowed queries on stock ticks, on up to 10 hosts.

Each query keeps first, min, average, max and last price per company of one sector over x seconds. All queries read the tick
stream; a query sees its sector's share and works the longer the longer its window is. Shares and times are ours (the paper draws
window and sector at random): seven sectors, five window lengths, so that the busiest minutes fill about nine hosts of one core.
"""

from __future__ import annotations

from foretide.apps.app import App, Service, Values
from foretide.topology import Operator, Topology

_SECTOR_SHARES = (0.26, 0.20, 0.16, 0.13, 0.10, 0.08, 0.07)
_SERVICE_S = (0.0025, 0.0035, 0.0055, 0.008, 0.012)
_QUERIES = tuple(
    (f"q{sector}{window}", share, service_s)
    for sector, share in enumerate(_SECTOR_SHARES, 1)
    for window, service_s in zip("abcde", _SERVICE_S, strict=True)
)

TICKS = App(
    "ticks",
    "35 windowed queries on stock ticks, up to 10 hosts",
    "FUGU, section V",
    Topology(
        (Operator("feed", max_replicas=4), *(Operator(n, inputs=("feed",), max_replicas=4, stateful=True) for n, _, _ in _QUERIES))
    ),
    {"feed": Service(0.0005), **{n: Service(service_s, "uniform", spread=0.5) for n, _, service_s in _QUERIES}},
    selectivity={("feed", n): share for n, share, _ in _QUERIES},
    values=Values(500, zipf=1.0),
    hosts=10,
    load="ticks",
    window_s=10.0,
    target_latency_s=2.0,
)

APPS = (TICKS,)
