"""The probe's arithmetic on one operator without Spark: what came before the first window,
estimates, batches that still run.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from foretide.errors import NotReady
from foretide.model import Host, Sample
from foretide.spark.control.probe import PipelineProbe, loaded
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.edge.protocol import Manifest
from foretide.spark.run.accounts import Accounts, Delivery, Inputs, Partial, Use, Window
from foretide.spark.run.placing import Placement
from foretide.spark.run.trees import Trees
from foretide.spark.worker.meter import Progress, Report
from foretide.topology import Operator, Topology


class OneOperator:
    """A running pipeline of one DataFrame operator on a source whose count the test sets."""

    def __init__(self) -> None:
        self.topology = Topology((Operator("sql"),))
        self.accounts = Accounts({"sql": None}, {"sql": Inputs(outside=self._outside)})
        wired = SimpleNamespace(
            step=SimpleNamespace(kind="frame"), sources=("kafka",), diverts=False
        )
        query = SimpleNamespace(
            wired=wired, query=object(), in_flight=None, kept_state=lambda: None
        )
        self.queries = {"sql": query}
        self.replicas = {"sql": 2}
        self.arrived: int | None = 0
        self.pipeline = Pipeline("one", trigger_s=2.0)
        self.placement = Placement()
        self.trees: Trees | None = None

    def _outside(self, latest: Manifest, at: float) -> int | None:
        return self.arrived

    def check(self) -> None: ...

    def max_parallelism(self, name: str) -> int | None:
        return None

    def done(self, events: int) -> None:
        last = self.accounts.latest("sql")
        consumed = {"kafka": self.accounts.consumed("sql") + events}
        manifest = Manifest(last.batch + 1, 0.0, 2, consumed)
        self.accounts.add("sql", Delivery(manifest, {"kafka": events}, {}))


def probed(task_s: list[float], slots: int = 4) -> tuple[OneOperator, PipelineProbe]:
    running: Any = OneOperator()
    executors: Any = SimpleNamespace(
        utilization=lambda now: (),
        busy_s=lambda query: task_s.pop(0),
        slots=lambda: slots,
        lead_s=lambda: 40.0,
        local=False,
    )
    return running, PipelineProbe(running, executors)


def test_task_seconds_of_before_the_first_window_belong_to_none() -> None:
    running, probe = probed([30.0, 2.0, 5.0])
    running.done(10)
    with pytest.raises(NotReady):
        probe.read(10.0)
    running.done(4)
    first = probe.read(20.0).samples["sql"]
    assert (first.processed, first.busy_s) == (4, 2.0)
    idle = probe.read(30.0).samples["sql"]
    assert (idle.processed, idle.busy_s) == (0, None), (
        "a job whose batch is not delivered yet waits for it"
    )
    running.done(6)
    assert probe.read(40.0).samples["sql"].busy_s == 5.0


def test_an_estimate_that_was_too_high_is_not_counted_again() -> None:
    running, probe = probed([0.0] * 9)
    with pytest.raises(NotReady):
        probe.read(0.0)
    arrived: list[float | None] = []
    for count in (50, 100, 90, 110):
        running.arrived = count
        arrived.append(probe.read(10.0 * (len(arrived) + 1)).samples["sql"].arrived)
    assert arrived == [50, 50, 0, 10]


def test_a_running_batch_counts_with_what_it_has_done_and_the_rest_waits() -> None:
    running, probe = probed([0.0] * 9)
    with pytest.raises(NotReady):
        probe.read(0.0)
    running.arrived = 100
    done = [Partial(30, {0: Progress(30, 3.0)})]
    running.accounts.begin("sql", lambda: done[0])
    first = probe.read(10.0).samples["sql"]
    assert (first.arrived, first.processed, first.busy_s, first.backlog) == (100, 30, 3.0, 70)
    done[0] = Partial(50, {0: Progress(50, 5.0)})
    second = probe.read(20.0).samples["sql"]
    assert (second.arrived, second.processed, second.busy_s, second.backlog) == (0, 20, 2.0, 50)
    manifest = Manifest(0, 0.0, 1, {"kafka": 100})
    report = Report(0, processed=100, busy_s=10.0)
    running.accounts.add("sql", Delivery(manifest, {"kafka": 100}, {}, [report]))
    third = probe.read(30.0).samples["sql"]
    assert (third.processed, third.busy_s, third.backlog) == (50, 5.0, 0)
    assert third.replica_processed == (50.0, 0.0)
    assert probe.read(40.0).samples["sql"].processed == 0


def test_what_arrived_is_unknown_rather_than_nothing() -> None:
    running, probe = probed([0.0] * 9)
    with pytest.raises(NotReady):
        probe.read(0.0)
    running.arrived = None
    with pytest.raises(NotReady, match="operator 'sql': its first batch still runs"):
        probe.read(10.0)
    running.arrived = 40
    snapshot = probe.read(20.0)
    assert (snapshot.window_s, snapshot.samples["sql"].arrived) == (20.0, 40)


def test_a_replica_works_from_the_next_batch_on_while_slots_are_free() -> None:
    """Two replicas: on four slots the next micro-batch has them, on two an executor must come."""
    for slots, lead_s in ((4, 5.0), (2, 40.0)):
        running, probe = probed([0.0] * 9, slots)
        with pytest.raises(NotReady):
            probe.read(0.0)
        running.done(10)
        running.done(10)
        snapshot = probe.read(10.0)
        assert (snapshot.slots, snapshot.lead_s) == (slots, lead_s)


def test_loads_of_an_executor_are_those_of_the_tasks_that_ran_there() -> None:
    reports = [
        Report(0, 10, busy_s=4.0, executor="0", memory_bytes=5e7, moved_bytes=100.0),
        Report(1, 10, busy_s=1.0, executor="1", memory_bytes=6e7, moved_bytes=50.0),
        Report(2, 10, busy_s=2.0, executor="0", memory_bytes=3e7, moved_bytes=20.0),
    ]
    window = Window([Delivery(Manifest(0, 0.0, 3), {"src": 30}, {}, reports)])
    assert window.by_executor() == {"0": Use(6.0, 8e7, 120.0), "1": Use(1.0, 6e7, 50.0)}
    samples = {"a": Sample(30, 30, 0, 3, busy_s=7.0), "sql": Sample(5, 5, 0, 1, busy_s=3.0)}
    hosts = (Host("0", 0.5, 2.0), Host("1", 0.25, 2.0))
    first, second = loaded(hosts, samples, {"a": window.by_executor(), "sql": {}}, window_s=10.0)
    assert first.loads == {"a": pytest.approx(0.6), "sql": pytest.approx(0.3)}
    assert second.loads == {"a": pytest.approx(0.1), "sql": pytest.approx(0.15)}
    assert first.uses == {"memory_bytes": {"a": 8e7}, "network_bytes_s": {"a": 12.0}}
