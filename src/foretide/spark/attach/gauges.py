"""What attach decides as gauges of Spark's own metrics system: every sink that the application has
set up (JMX, Prometheus, Graphite, a file) reports them beside Spark's figures.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol

from foretide.model import Decision

log = logging.getLogger(__name__)


class MetricCalls(Protocol):
    """The part of the JVM that gauges need; the application's own one, or a stand-in."""

    def setting(self, key: str, default: str) -> str: ...
    def metric_registry(self) -> Any: ...
    def gauge(self) -> Any: ...


def figures(decision: Decision) -> dict[str, float]:
    """What is known after a decision, by the gauge's name; what is not measured is left out."""
    known: dict[str, float | None] = {}
    if decision.plan is not None:
        known["executors_wanted"] = decision.plan.executors
        known["model_error"] = decision.plan.model_error
    if (snapshot := decision.snapshot) is not None:
        known["executors"] = len(snapshot.hosts) if snapshot.hosts is not None else None
        known["lead_s"] = snapshot.lead_s
        for name, sample in snapshot.samples.items():
            known[f"{name}.arrived_per_s"] = sample.arrived / snapshot.window_s
            known[f"{name}.backlog"] = sample.backlog
            known[f"{name}.batch_s"] = sample.batch_s
    return {name: float(value) for name, value in known.items() if value is not None}


class SparkGauges:
    """Gauges ``APPLICATION.driver.foretide.NAME``. They are a courtesy: where Spark's metrics
    system cannot be reached, one line in the log says so, and attach goes on without.
    """

    def __init__(self, calls: MetricCalls) -> None:
        self.calls = calls
        self._gauges: dict[str, Any] = {}
        self._registry: Any = None
        self._failed = False

    def note(self, decision: Decision) -> None:
        """Show what this decision says."""
        if self._failed:
            return
        try:
            for name, value in figures(decision).items():
                self._gauge(name).setValue(value)
        except Exception as error:  # whatever a Spark version answers, the loop goes on
            self._failed = True
            log.info("no gauges in Spark's metrics system: %s", str(error).partition("\n")[0])

    def _gauge(self, name: str) -> Any:
        if name not in self._gauges:
            if self._registry is None:
                self._registry = self.calls.metric_registry()
            gauge = self.calls.gauge()
            self._registry.remove(self._full(name))  # of an earlier attachment
            self._registry.register(self._full(name), gauge)
            self._gauges[name] = gauge
        return self._gauges[name]

    def _full(self, name: str) -> str:
        application = self.calls.setting("spark.app.id", "application")
        space = self.calls.setting("spark.metrics.namespace", application)
        return f"{space}.driver.foretide.{name}"

    def close(self) -> None:
        """Take the gauges away: nobody sets them any more."""
        try:
            for name in self._gauges:
                self._registry.remove(self._full(name))
        except Exception as error:
            log.debug("gauges stay in Spark's metrics system: %s", error)
        self._gauges.clear()
