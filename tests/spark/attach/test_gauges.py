"""Gauges in Spark's own metrics system."""

import math
from typing import Any

import pytest
from pyspark.sql import SparkSession

from foretide.model import Decision, Host, Plan, Sample, Snapshot
from foretide.spark.attach.gauges import SparkGauges, figures
from foretide.spark.control.jvm import SparkJvm


def decided(arrived: float, executors: int) -> Decision:
    sample = Sample(arrived=arrived, processed=arrived, backlog=7.0, replicas=2)
    hosts = (Host("0", 0.5), Host("1", 0.5))
    snapshot = Snapshot(100.0, 5.0, {"clean": sample}, hosts=hosts, lead_s=12.0)
    plan = Plan({"clean": 2}, {"clean": "two", "": "three"}, executors=executors)
    return Decision(100.0, "advised", "advise", snapshot, plan=plan)


def test_what_is_not_measured_is_left_out() -> None:
    known = figures(decided(50.0, 3))
    assert known["clean.arrived_per_s"] == 10.0
    assert known["clean.backlog"] == 7.0
    assert (known["executors"], known["executors_wanted"], known["lead_s"]) == (2, 3, 12)
    assert "model_error" not in known
    assert figures(Decision(100.0, "failed", "advise", error="no window")) == {}


class NoMetrics:
    """A Spark whose metrics system cannot be reached."""

    asked = 0

    def setting(self, key: str, default: str) -> str:
        return default

    def metric_registry(self) -> Any:
        self.asked += 1
        raise AttributeError("no such field")

    def gauge(self) -> Any:
        raise AssertionError("there is no registry for it")


def test_a_spark_without_a_reachable_metrics_system_is_asked_once() -> None:
    calls = NoMetrics()
    gauges = SparkGauges(calls)
    for _ in range(3):
        gauges.note(decided(50.0, 3))
    gauges.close()
    assert calls.asked == 1


@pytest.mark.spark
def test_spark_s_own_sinks_report_what_attach_decided(spark: SparkSession) -> None:
    calls = SparkJvm(spark)
    registry = calls.metric_registry()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    sink = jvm.org.apache.spark.metrics.sink.PrometheusServlet(jvm.java.util.Properties(), registry)

    def reported() -> dict[str, float]:
        rows = [r.split("{") for r in sink.getMetricsSnapshot(None).splitlines()]
        values = {r[0]: float(r[1].rpartition(" ")[2]) for r in rows if "_foretide_" in r[0]}
        return {k.partition("_foretide_")[2].removesuffix("_Value"): v for k, v in values.items()}

    gauges = SparkGauges(calls)
    gauges.note(decided(50.0, 3))
    assert reported()["executors_wanted"] == 3
    gauges.note(decided(200.0, 4))
    seen = reported()
    assert seen["executors_wanted"] == 4
    assert math.isclose(seen["clean_arrived_per_s"], 40.0)
    again = SparkGauges(calls)
    again.note(decided(50.0, 1))
    assert reported()["executors_wanted"] == 1, "the newest attachment is the one that counts"
    again.close()
    assert reported() == {}
