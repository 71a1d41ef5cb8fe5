"""Foretide scales streaming pipelines on Apache Spark before the load arrives."""

from foretide.autoscaler import Autoscaler, Cadence
from foretide.errors import ForetideError, NotReady
from foretide.history import History
from foretide.journal import Journal, Run
from foretide.model import Decision, Forecast, Host, Latency, Plan, Prices, Sample, Snapshot
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
    "system",
]
