"""The app of FUGU: 35 windowed queries on stock ticks, on up to 10 hosts.

Each query keeps first, min, average, max and last price per company of one sector over x seconds.
All queries read the tick stream; a query sees its sector's share and works the longer the longer
its window is. Shares and times are ours (the paper draws window and sector at random): seven
sectors, five window lengths; the average tick costs 31.5 ms over all queries, so that 100 ticks/s
keep about three hosts of one core busy, as published (half a host saved by 0.05 utilization). A
query cannot be split, so the heaviest one fits a host at its target utilization (0.6) even at the
load's busiest, about 340 ticks/s.
"""

from __future__ import annotations

from foretide.apps.app import App, Service, Values
from foretide.topology import Operator, Topology

_SECTOR_SHARES = (0.20, 0.18, 0.16, 0.14, 0.12, 0.11, 0.09)
_SERVICE_S = (0.0040, 0.0050, 0.0063, 0.0075, 0.0087)
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
        (
            Operator("feed", max_replicas=4),
            *(Operator(n, inputs=("feed",), max_replicas=4, stateful=True) for n, _, _ in _QUERIES),
        )
    ),
    {
        "feed": Service(0.0005),
        **{n: Service(service_s, "uniform", spread=0.5) for n, _, service_s in _QUERIES},
    },
    selectivity={("feed", n): share for n, share, _ in _QUERIES},
    values=Values(500, zipf=1.0),
    hosts=10,
    load="ticks",
    window_s=10.0,
    target_latency_s=2.0,
)

APPS = (TICKS,)
