"""Foretide scales streaming pipelines on Apache Spark before the load arrives.

Names are imported when first used: Spark's workers import parts of this package and should not wait
for the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foretide.autoscaler import Autoscaler, Cadence
    from foretide.errors import ForetideError, NotReady
    from foretide.history import History
    from foretide.journal import Journal, Run
    from foretide.model import Decision, Forecast, Host, Latency, Plan, Prices, Sample, Snapshot
    from foretide.spark.attach.attachment import attach
    from foretide.systems import SYSTEMS, System, system
    from foretide.topology import Operator, Topology

__version__ = "0.1.0"

__all__ = [
    "SYSTEMS",
    "Autoscaler",
    "Cadence",
    "Decision",
    "Forecast",
    "ForetideError",
    "History",
    "Host",
    "Journal",
    "Latency",
    "NotReady",
    "Operator",
    "Plan",
    "Prices",
    "Run",
    "Sample",
    "Snapshot",
    "System",
    "Topology",
    "__version__",
    "attach",
    "system",
]

_HOME = {
    "Autoscaler": "foretide.autoscaler",
    "Cadence": "foretide.autoscaler",
    "ForetideError": "foretide.errors",
    "NotReady": "foretide.errors",
    "History": "foretide.history",
    "Journal": "foretide.journal",
    "Run": "foretide.journal",
    "Decision": "foretide.model",
    "Forecast": "foretide.model",
    "Host": "foretide.model",
    "Latency": "foretide.model",
    "Plan": "foretide.model",
    "Prices": "foretide.model",
    "Sample": "foretide.model",
    "Snapshot": "foretide.model",
    "attach": "foretide.spark.attach.attachment",
    "SYSTEMS": "foretide.systems",
    "System": "foretide.systems",
    "system": "foretide.systems",
    "Operator": "foretide.topology",
    "Topology": "foretide.topology",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'foretide' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOME[name]), name)
