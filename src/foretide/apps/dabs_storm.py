"""The apps of DABS-Storm: insensitive and sensitive chains, and the opinion app with a sensitive
city lookup.

From the authors' public code: intermediate 2 ms, sink 80 ms; city lookup 80 ms, or 10 to 100 ms in
steps of 10 by city. The stage to watch is the 80 ms one. Times the code does not give (dispatch,
analyses, persister) are ours: light next to the lookup. An event is lost when it is older than 30
s. Nine machines of two cores carry the replicas.
"""

from __future__ import annotations

from foretide.apps.app import App, Service, Values
from foretide.topology import Operator, Topology

_BY_CITY = Service(0.055, "by-value", by_value_s=tuple(i * 0.010 for i in range(1, 11)))


def _chain(
    name: str, summary: str, middle: Service, last: Service, values: Values, load: str
) -> App:
    return App(
        name,
        summary,
        "DABS-Storm, section 7",
        Topology(
            (
                Operator("source"),
                Operator("work", inputs=("source",)),
                Operator("finish", inputs=("work",)),
            )
        ),
        {"source": Service(0.0005), "work": middle, "finish": last},
        values=values,
        timeout_s=30.0,
        hosts=9,
        host_cores=2.0,
        load=load,
        window_s=10.0,
        target_latency_s=5.0,
    )


OPINION = App(
    "opinion",
    "opinions: dispatcher, sensitive city lookup and analysis, age analysis, persister",
    "DABS-Storm, figure 10",
    Topology(
        (
            Operator("source"),
            Operator("dispatch", inputs=("source",)),
            Operator("city-lookup", inputs=("dispatch",)),
            Operator("city-analysis", inputs=("city-lookup",)),
            Operator("age-analysis", inputs=("dispatch",)),
            Operator("persist", inputs=("city-analysis", "age-analysis")),
        )
    ),
    {
        "source": Service(0.0005),
        "dispatch": Service(0.002),
        "city-lookup": _BY_CITY,
        "city-analysis": Service(0.005),
        "age-analysis": Service(0.005),
        "persist": Service(0.002),
    },
    selectivity={
        ("dispatch", "city-lookup"): 0.8,
        ("dispatch", "age-analysis"): 0.8,
        ("city-analysis", "persist"): 0.1,
        ("age-analysis", "persist"): 0.1,
    },
    values=Values(1000, zipf=1.5),
    timeout_s=30.0,
    hosts=9,
    host_cores=2.0,
    load="erratic",
    window_s=10.0,
    target_latency_s=5.0,
)

APPS = (
    _chain(
        "insensitive",
        "three stages, 2 ms and 80 ms whatever the value",
        Service(0.002),
        Service(0.080),
        Values(),
        "progressive",
    ),
    _chain(
        "sensitive",
        "three stages, 10 to 100 ms by the event's value (Zipf 1.5)",
        _BY_CITY,
        Service(0.002),
        Values(1000, zipf=1.5),
        "progressive",
    ),
    OPINION,
)
