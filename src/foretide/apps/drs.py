"""The apps of DRS: video logo detection, frequent patterns with a loop, and the three test networks
of the authors' public code.

The paper gives no service times for VLD and FPD. Ours are such that the M/M/k model finds the
published best allocations: VLD 10:11:1 of 22 at 13 frames/s (and, wrongly as published, 3:3:1 of 7
at 5 frames/s), FPD 6:13:3 of 22 at 320 tweets/s.
"""

from __future__ import annotations

from foretide.apps.app import App, Service
from foretide.topology import Operator, Topology


def _exponential(rate: float) -> Service:
    return Service(1.0 / rate, "exponential")


VLD = App(
    "vld",
    "video logo detection: extract features, match them, aggregate",
    "DRS, section V",
    Topology(
        (
            Operator("extract"),
            Operator("match", inputs=("extract",)),
            Operator("aggregate", inputs=("match",)),
        )
    ),
    {
        "extract": Service(0.18, "exponential"),
        "match": Service(0.024, "exponential"),
        "aggregate": Service(0.001, "exponential"),
    },
    selectivity={("extract", "match"): 10.0, ("match", "aggregate"): 0.1},
    arrivals="poisson",
    hosts=5,
    host_cores=5.0,
    load="frame-rate-long",
    window_s=60.0,
    target_latency_s=1.0,
)

FPD = App(
    "fpd",
    "frequent patterns: generate, detect (tells itself through a loop), report",
    "DRS, section V",
    Topology(
        (
            Operator("generate"),
            Operator("detect", inputs=("generate", "detect")),
            Operator("report", inputs=("detect",)),
        )
    ),
    {
        "generate": Service(0.009, "exponential"),
        "detect": Service(0.007, "exponential"),
        "report": Service(0.005, "exponential"),
    },
    selectivity={("generate", "detect"): 3.0, ("detect", "detect"): 0.2, ("detect", "report"): 0.2},
    arrivals="poisson",
    hosts=5,
    host_cores=5.0,
    load="stable:mean=320,days=1",
    window_s=60.0,
    target_latency_s=1.0,
)

CHAIN = App(
    "chain",
    "two operators in a row, 10 and 15 events/s per replica",
    "DRS, public code",
    Topology((Operator("first"), Operator("second", inputs=("first",)))),
    {"first": _exponential(10.0), "second": _exponential(15.0)},
    arrivals="poisson",
    load="stable:mean=50,days=1",
)

TWO_PATHS = App(
    "two-paths",
    "a split 0.6 to 0.4: 10, then 5 or 15 events/s per replica",
    "DRS, public code",
    Topology(
        (
            Operator("first"),
            Operator("left", inputs=("first",)),
            Operator("right", inputs=("first",)),
        )
    ),
    {"first": _exponential(10.0), "left": _exponential(5.0), "right": _exponential(15.0)},
    selectivity={("first", "left"): 0.6, ("first", "right"): 0.4},
    splits=frozenset({"first"}),
    arrivals="poisson",
    load="stable:mean=50,days=1",
)

LOOP_BACK = App(
    "loop-back",
    "the chain, with a fifth of the events sent back to the start",
    "DRS, public code",
    Topology(
        (Operator("first", inputs=("second",), source=True), Operator("second", inputs=("first",)))
    ),
    {"first": _exponential(10.0), "second": _exponential(15.0)},
    selectivity={("second", "first"): 0.2},
    arrivals="poisson",
    load="stable:mean=50,days=1",
)

APPS = (VLD, FPD, CHAIN, TWO_PATHS, LOOP_BACK)
