"""The probe of watched queries on a scripted application: what it asks, when, and what it makes of
it.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from reports import offsets, report
from scripted_cluster import ScriptedCluster

from foretide.errors import NotReady
from foretide.spark.attach.probe import AttachedProbe
from foretide.spark.attach.progress import topology_of
from foretide.spark.attach.queries import WatchedQueries
from foretide.spark.control.executors import ExecutorPool


class Application:
    """A session with queries, and the calls into its JVM."""

    def __init__(self, *names: str) -> None:
        self.active = [
            SimpleNamespace(
                name=n, id=f"id-{n}", runId=f"run-{n}",
                status={"isDataAvailable": True, "isTriggerActive": True},
            )
            for n in names
        ]  # fmt: skip
        self.streams = self
        self.polled: list[str] = []
        self.newest = 0

    def latest_offsets(self, query: Any) -> Any:
        self.polled.append(query.name)
        return [offsets(self.newest)]

    def trigger_s(self, query: Any) -> float | None:
        return 2.0


def probed(application: Application, *reports: Any) -> tuple[AttachedProbe, ScriptedCluster]:
    queries = WatchedQueries(10.0)
    for r in reports:
        queries.add(r)
    cluster = ScriptedCluster(2)
    session: Any = application
    probe = AttachedProbe(
        session,
        topology_of(queries.latest, {}, 8),
        queries,
        ExecutorPool(calls=cluster, now=lambda: cluster.now),
        set(),
        application,
    )
    probe.begin(10.0)
    return probe, cluster


def test_kafka_is_asked_for_its_newest_offsets_and_others_are_not() -> None:
    application = Application("kafka", "rate")
    probe, _ = probed(
        application,
        report("kafka", 9.0, 0.5, 60, latest=600, end=600),
        report("rate", 7.0, 1.0, 40),
        report("rate", 9.0, 0.5, 40, batch_id=1),
    )
    application.newest = 960
    snapshot = probe.read(15.0)
    assert application.polled == ["kafka"]
    assert snapshot.samples["kafka"].arrived == pytest.approx(300)
    assert snapshot.samples["kafka"].backlog == 360
    assert snapshot.samples["rate"].arrived == pytest.approx(100)
    assert snapshot.samples["kafka"].trigger_s == 2.0
    assert (snapshot.slots, snapshot.lead_s) == (2, 4.0)
    assert snapshot.hosts is not None
    assert [h.name for h in snapshot.hosts] == ["0", "1"]


def test_a_query_that_waits_for_data_is_silent() -> None:
    application = Application("rate")
    probe, _ = probed(application, report("rate", 5.0), report("rate", 9.0, 0.5, batch_id=1))
    application.active[0].status = {"isDataAvailable": False, "isTriggerActive": False}
    probe.read(15.0)
    assert probe.read(20.0).samples["rate"].arrived == 0


def test_a_query_without_a_batch_is_waited_for_unless_spark_calls_it_idle() -> None:
    application = Application("rate", "new")
    probe, _ = probed(application, report("rate", 5.0), report("rate", 9.0, 0.5, batch_id=1))
    with pytest.raises(NotReady, match="no batch of new was reported yet: executors stay"):
        probe.read(15.0)
    probe.idle.add("id-new")
    assert set(probe.read(20.0).samples) == {"rate"}


def test_no_query_at_all_is_not_ready() -> None:
    application = Application("rate")
    probe, _ = probed(application, report("rate", 5.0), report("rate", 9.0, 0.5, batch_id=1))
    application.active = []
    with pytest.raises(NotReady, match="no streaming query is running: executors stay"):
        probe.read(15.0)
