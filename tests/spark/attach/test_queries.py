"""The watched queries window by window, without Spark."""

import logging

import pytest
from reports import offsets, report

from foretide.errors import NotReady
from foretide.model import StageRun
from foretide.spark.attach.progress import topology_of
from foretide.spark.attach.queries import ClusterState, QueryState, WatchedQueries
from foretide.spark.control.jvm import JobInfo, StageInfo


def watched(*reports):
    queries = WatchedQueries(target_s=10.0)
    queries.begin(0.0)
    for r in reports:
        queries.add(r)
    return queries, topology_of(queries.latest, {}, 8)


TWO = ClusterState(slots=2)
Q = {"q": QueryState()}


def test_a_window_holds_the_batches_that_ended_in_it_and_the_events_that_came_in_it():
    queries, topology = watched(
        *(report("q", s, 1.0, 120.0, batch_id=i) for i, s in enumerate((0.0, 2.0, 4.0, 8.9)))
    )
    first = queries.snapshot(topology, 10.0, TWO, Q).samples["q"]
    assert (first.processed, first.batches, first.batch_s, first.replicas) == (360, 3, 1.0, 2)
    assert first.arrived == pytest.approx(240 + 120 + 1.1 * 120 / 4.9)
    second = queries.snapshot(topology, 20.0, TWO, Q).samples["q"]
    assert (second.processed, second.batches) == (120, 1)
    assert second.arrived == pytest.approx(10 * 120 / 4.9)


def test_polled_offsets_give_the_arrivals_and_the_backlog():
    queries, topology = watched(report("q", 0.0, 1.0, 100.0, latest=500, end=100))
    state = {"q": QueryState(offsets=[offsets(800)])}
    sample = queries.snapshot(topology, 10.0, TWO, state).samples["q"]
    assert (sample.arrived, sample.backlog, sample.max_parallelism) == (300, 700, 2)
    assert sample.batch_runs[0].left == 400


def test_task_seconds_and_stages_belong_to_the_batch_they_ran_in():
    queries, topology = watched(
        report("q", 1.0, 3.0, 100.0), report("q", 5.0, 8.0, 100.0, batch_id=1)
    )
    jobs = [
        JobInfo(1, 1.5, (StageInfo(8, 4.0, 1.5, 3.5), StageInfo(2, 0.5, 3.5, 3.75))),
        JobInfo(2, 5.5, (StageInfo(8, 6.0, 5.5, 9.0),)),
    ]
    first = queries.snapshot(topology, 10.0, TWO, {"q": QueryState(jobs)}).samples["q"]
    assert first.busy_s == 4.5
    (run,) = first.batch_runs
    assert run.stages == (StageRun(8, 4.0, 2.0), StageRun(2, 0.5, 0.25))
    second = queries.snapshot(topology, 20.0, TWO, Q).samples["q"]
    assert second.busy_s == 6.0, "tasks ended a window before Spark reported their batch"


def test_slots_that_changed_during_a_batch_are_not_known():
    queries, topology = watched(report("q", 0.0, 1.0, 9.0), report("q", 2.0, 4.0, 9.0, batch_id=1))
    cluster = ClusterState(2, slots_at=lambda at: 1 if at < 3.0 else 2)
    runs = queries.snapshot(topology, 10.0, cluster, Q).samples["q"].batch_runs
    assert [r.slots for r in runs] == [1, None]


def test_a_query_at_work_that_has_not_ended_a_batch_is_waited_for():
    """Without it in the sum, the executors it works on would look idle."""
    queries, topology = watched(report("light"), report("light", 2.0, batch_id=1))
    states = {"light": QueryState(), "heavy": QueryState()}
    with pytest.raises(NotReady, match="no batch of heavy was reported yet: executors stay"):
        queries.snapshot(topology, 5.0, TWO, states)


def test_one_batch_of_a_source_without_offsets_gives_no_rate():
    queries, topology = watched(report("q"))
    with pytest.raises(NotReady, match="known after its second batch: executors stay"):
        queries.snapshot(topology, 5.0, TWO, Q)


def test_a_query_that_ended_is_forgotten_and_the_loop_hears_of_it():
    heard = []
    queries = WatchedQueries(changed=lambda: heard.append(1))
    for r in (report("a"), report("b"), report("a", 2.0, batch_id=1)):
        queries.add(r)
    queries.forget("b", "run-1")
    assert set(queries.latest) == {"a"}
    assert len(heard) == 3, "two came, one went"


def test_a_new_run_of_a_query_stays_when_its_old_run_is_reported_as_ended():
    queries, topology = watched(report("q", batch_id=5), report("q", 2.0, batch_id=6))
    queries.add(report("q", 20.0, batch_id=7, run_id="run-2"))
    queries.forget("q", "run-1")
    assert queries.latest["q"].run_id == "run-2"
    with pytest.raises(NotReady, match="executors stay"):
        queries.snapshot(topology, 25.0, TWO, Q)


def test_reports_that_did_not_arrive_are_one_sentence(caplog):
    queries, topology = watched(report("q", 0.0, 1.0, 60.0, latest=60, end=60))
    with caplog.at_level(logging.WARNING):
        queries.add(report("q", 6.0, 1.0, 60.0, batch_id=3, latest=420, end=420))
    assert "2 progress report(s) of query q did not arrive" in caplog.text
    sample = queries.snapshot(topology, 10.0, TWO, Q).samples["q"]
    assert sample.arrived == pytest.approx(600), "offsets count what no report counted"


def test_nothing_arrives_while_all_sources_are_silent():
    queries, topology = watched(report("q"), report("q", 2.0, batch_id=1))
    silent = {"q": QueryState(silent=True)}
    queries.snapshot(topology, 10.0, TWO, silent)
    sample = queries.snapshot(topology, 20.0, TWO, silent).samples["q"]
    assert (sample.arrived, sample.backlog) == (0, 0)


def test_every_query_is_measured_by_its_own_target():
    queries = WatchedQueries(target_s=10.0, targets={"fast": 1.5})
    queries.begin(0.0)
    for name in ("fast", "slow"):
        for i, s in enumerate((0.0, 2.0)):
            queries.add(report(name, s, 1.0, 100.0, batch_id=i))
    topology = topology_of(queries.latest, {}, 8)
    snapshot = queries.snapshot(topology, 10.0, TWO, {})
    fast, slow = (snapshot.samples[n].latency for n in ("fast", "slow"))
    assert fast is not None
    assert slow is not None
    assert (fast.within, slow.within) == (125, 200), "1 s for the first batch, 1 to 3 s afterwards"
    assert snapshot.latency is not None
    assert snapshot.latency.within == 325
