"""Executors on a scripted cluster: asking, giving back, refusals, deaths, lead times."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from scripted_cluster import ScriptedCluster

from foretide.errors import ActuationError
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.lead_time import LeadTimes


def pool(cluster: ScriptedCluster, lead_times: LeadTimes | None = None) -> ExecutorPool:
    return ExecutorPool(calls=cluster, lead_times=lead_times, now=lambda: cluster.now)


def test_cores_are_asked_for_until_an_executor_is_there() -> None:
    cluster = ScriptedCluster(executors=0, cores=4)
    executors = pool(cluster)
    assert executors.wanted_for(8) == 8
    cluster._add(11.0)
    assert executors.wanted_for(8) == 2
    assert (executors.cores, executors.slots(), executors.names()) == (4, 4, ("0",))


def test_totals_are_absolute_and_the_least_busy_are_given_back() -> None:
    cluster = ScriptedCluster(executors=3, spark_decommission_enabled="true")
    executors = pool(cluster)
    executors.utilization(1.0)
    for name, seconds in (("0", 5.0), ("1", 1.0), ("2", 9.0)):
        cluster.work(name, seconds)
    executors.utilization(11.0)
    executors.request(2)
    assert (cluster.asked, cluster.given_back) == ([2], ["1"])
    executors.request(2)
    assert (cluster.asked, cluster.given_back) == ([2, 2], ["1"])


def test_a_busy_executor_stays_where_decommissioning_is_off() -> None:
    cluster = ScriptedCluster(executors=2)
    cluster.busy = {"1"}
    pool(cluster).request(1)
    assert cluster.given_back == []


def test_executors_that_register_after_a_smaller_total_are_given_back() -> None:
    cluster = ScriptedCluster(executors=2, spark_decommission_enabled="true")
    executors = pool(cluster)
    executors.settle()
    assert cluster.asked == [], "nothing was asked for yet: all of them may stay"
    executors.request(2)
    cluster._add(cluster.now)  # it was on its way
    executors.settle()
    assert len(cluster.given_back) == 1
    executors.settle()
    assert (len(cluster.given_back), len(executors.names())) == (1, 2)


def test_a_busy_executor_is_stopped_once_it_is_idle() -> None:
    cluster = ScriptedCluster(executors=2)
    executors = pool(cluster)
    cluster.busy = {"0", "1"}
    executors.request(1)
    cluster.busy = set()
    executors.settle()
    assert len(cluster.given_back) == 1


def test_a_cluster_manager_that_refuses_or_fails_changes_nothing() -> None:
    cluster = ScriptedCluster(executors=3)
    executors = pool(cluster)
    cluster.refuses = True
    with pytest.raises(ActuationError, match="the cluster manager refused 1 executors"):
        executors.request(1)
    cluster.fails = True
    with pytest.raises(ActuationError, match="could not be asked for 1 executors: connection"):
        executors.request(1)
    assert (executors.names(), cluster.given_back) == (("0", "1", "2"), [])


def test_guiding_asks_for_more_and_never_gives_back() -> None:
    cluster = ScriptedCluster(executors=3)
    executors = pool(cluster)
    executors.raise_to(2)
    assert cluster.asked == []
    executors.raise_to(4)
    assert cluster.asked == [4]
    cluster.refuses = True
    with pytest.raises(ActuationError, match="refused 6 executors"):
        executors.raise_to(6)
    assert cluster.given_back == []


def test_executors_that_die_are_replaced_by_the_next_request() -> None:
    cluster = ScriptedCluster(executors=3)
    executors = pool(cluster)
    cluster.die("1")
    executors.request(3)
    cluster.now += cluster.lead_s
    assert executors.names() == ("0", "2", "3")
    assert cluster.given_back == []


def test_the_lead_time_is_measured_and_remembered_by_cluster_manager(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "lead_times.json"
    cluster = ScriptedCluster(executors=1)
    executors = pool(cluster, LeadTimes(file))
    assert executors.lead_s() == 4.0, "how long the application waited for its first executor"
    executors.request(3)
    cluster.now += 5.0
    assert executors.lead_s() == 4.0
    cluster.now += 5.0
    assert executors.lead_s() == 8.0
    assert json.loads(file.read_text()) == {"standalone": [8.0, 8.0]}
    later = pool(ScriptedCluster(executors=1), LeadTimes(file, initial_s=60.0))
    assert later.lead_s() == 8.0


def test_a_lead_time_may_be_set_for_the_first_time_and_a_broken_file_is_no_error(
    tmp_path: Path,
) -> None:
    (tmp_path / "lead_times.json").write_text("{torn")
    times = LeadTimes(tmp_path / "lead_times.json", initial_s=90.0)
    assert pool(ScriptedCluster(), times).lead_s() == 90.0
    (tmp_path / "file").touch()
    unwritable = LeadTimes(tmp_path / "file" / "lead_times.json")
    unwritable.asked(1.0, 1)
    unwritable.observe("yarn", [3.0])
    assert unwritable.lead_s("yarn") == 2.0


def test_requests_repeated_while_executors_are_on_their_way_count_from_the_first() -> None:
    times = LeadTimes()
    for at in (100.0, 105.0, 110.0):
        times.asked(at, 2)
    times.observe("yarn", [112.0, 113.0])
    assert times.lead_s("yarn") == pytest.approx(12.5)


def test_jobs_are_given_out_once() -> None:
    executors = pool(ScriptedCluster())
    query = SimpleNamespace(runId="run-1")
    assert [j.number for j in executors.ended_jobs(query)] == [0, 1, 2]
    assert executors.busy_s(query) is None
