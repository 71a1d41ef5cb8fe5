"""Failure drills of attach on a scripted cluster: executors stay or become more, never fewer by
mistake, and each failure is one sentence in the journal.
"""

from dataclasses import replace

import pytest
from scripted_cluster import ScriptedCluster
from watched_query import WatchedQuery

from foretide.errors import NotReady
from foretide.model import Host, Snapshot
from foretide.spark.control.executor_actuator import ExecutorActuator
from foretide.spark.control.executors import ExecutorPool
from foretide.systems import system


class Drill:
    """The attached loop between a query of arithmetic and a scripted cluster."""

    def __init__(self, rate, executors=4, max_executors=4):
        self.query = WatchedQuery(rate, executors=executors)
        self.cluster = ScriptedCluster(executors, spark_decommission_enabled="true")
        self.pool = ExecutorPool(calls=self.cluster, now=lambda: self.cluster.now)
        self.outage = None
        self.now = 0.0
        self.changed = lambda snapshot: snapshot
        constants = {**system("attach").planner_constants, "max_executors": max_executors}
        self.scaler = system("attach", planner_constants=constants).autoscaler(
            self.query.topology, self, ExecutorActuator(self.pool), "act"
        )

    def read(self, now: float) -> Snapshot:
        snapshot = self.query.window(5.0)
        self.cluster.now = snapshot.at
        self.query.executors = max(1, len(self.pool.names()))
        if self.outage:
            raise NotReady(self.outage)
        hosts = tuple(Host(n, 0.5) for n in self.pool.names())
        return self.changed(replace(snapshot, hosts=hosts, slots=len(hosts)))

    def windows(self, count):
        decisions = []
        for _ in range(count):
            self.now += 5.0
            decisions.append(self.scaler.step(self.now))
        return decisions

    @property
    def running(self):
        return len(self.pool.names())


def test_without_a_failure_executors_follow_the_load():
    drill = Drill(lambda t: 60.0)
    drill.windows(20)
    assert drill.running <= 2


@pytest.mark.parametrize("how", ["refuses", "fails"])
def test_a_cluster_manager_that_refuses(how):
    drill = Drill(lambda t: 60.0 if t < 60 else 240.0, executors=1)
    drill.windows(10)
    setattr(drill.cluster, how, True)
    decisions = drill.windows(10)
    assert drill.running == 1
    errors = [d.error for d in decisions if d.error]
    assert errors
    assert all("the cluster manager" in e for e in errors)
    setattr(drill.cluster, how, False)
    drill.windows(6)
    assert drill.running >= 3, "it asks again"


def test_executors_that_die_come_back():
    drill = Drill(lambda t: 240.0)
    drill.windows(10)
    before = drill.running
    drill.cluster.die(drill.pool.names()[0])
    decisions = drill.windows(6)
    assert drill.running >= before
    assert drill.cluster.given_back == []
    assert [d.error for d in decisions if d.outcome == "failed"] == []


def test_a_query_that_restarts_under_a_new_run_id():
    drill = Drill(lambda t: 240.0)
    drill.windows(10)
    before = drill.running
    drill.outage = "no batch of q was reported yet: executors stay until its first one ends"
    decisions = drill.windows(10)
    assert drill.running == before
    assert {d.outcome for d in decisions} == {"waiting"}
    assert all("executors stay" in (d.error or "") for d in decisions)


def test_reports_that_the_listener_bus_drops():
    """Offsets still count what arrives; no batch is reported for a minute."""
    drill = Drill(lambda t: 240.0)
    drill.windows(10)
    before = drill.running

    def unreported(snapshot):
        sample = replace(
            snapshot.samples["q"], processed=0, busy_s=0.0, batches=0.0, batch_s=None, batch_runs=()
        )
        return replace(snapshot, samples={"q": sample})

    drill.changed = unreported
    drill.windows(12)
    assert drill.running >= before
    assert drill.cluster.given_back == []


def test_sources_that_all_fall_silent():
    drill = Drill(lambda t: 240.0 if t < 60 else 0.0)
    drill.windows(10)
    before = drill.running
    decisions = drill.windows(20)
    assert drill.running >= before
    assert drill.cluster.given_back == []
    plan = decisions[-1].plan
    assert plan is not None
    assert "nothing arrives at any source: executors stay at" in plan.reasons[""]
