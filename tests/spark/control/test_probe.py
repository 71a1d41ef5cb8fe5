"""The probe's arithmetic on a pipeline that is made up: what was before the first window, what is
told twice.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from foretide.errors import NotReady
from foretide.spark.control.probe import PipelineProbe
from foretide.spark.edge.protocol import Manifest
from foretide.spark.run.accounts import Accounts, Delivery
from foretide.topology import Operator, Topology


class Counted(Accounts):
    """Counts arrivals of a source that is not ours as Spark reports them: done and waiting."""

    def arrivals(self, name: str, at: float, lag: int = 0) -> tuple[int, int]:
        return 0, self.consumed(name) + lag


class Pretended:
    """One DataFrame operator on a source that is not ours."""

    def __init__(self) -> None:
        self.topology = Topology((Operator("sql"),))
        self.accounts = Counted({"sql": None})
        wired = SimpleNamespace(
            step=SimpleNamespace(kind="frame"), sources=("kafka",), diverts=False
        )
        self.queries = {"sql": SimpleNamespace(wired=wired, query=object(), in_flight=None)}
        self.replicas = {"sql": 2}
        self.waiting = 0

    def check(self) -> None: ...

    def lag(self, name: str) -> int:
        return self.waiting

    def done(self, events: int) -> None:
        last = self.accounts.latest("sql")
        consumed = {"kafka": self.accounts.consumed("sql") + events}
        manifest = Manifest(last.batch + 1, 0.0, 2, consumed)
        self.accounts.add("sql", Delivery(manifest, {"kafka": events}, {}))


def probed(task_s: list[float]) -> tuple[Pretended, PipelineProbe]:
    running: Any = Pretended()
    executors: Any = SimpleNamespace(utilization=lambda now: (), busy_s=lambda query: task_s.pop(0))
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


def test_events_that_a_source_tells_twice_arrive_once() -> None:
    """A delivered batch counts at once, what its source says is waiting only when Spark has
    reported the batch.
    """
    running, probe = probed([0.0] * 9)
    with pytest.raises(NotReady):
        probe.read(0.0)
    came = []
    for done, waiting in ((0, 50), (50, 50), (0, 0), (20, 10), (0, 0)):
        if done:
            running.done(done)
        running.waiting = waiting
        came.append(probe.read(10.0 * (len(came) + 1)).samples["sql"].arrived)
    assert came == [50, 50, 0, 0, 0]
    running.done(60)
    assert sum(came) + probe.read(99.0).samples["sql"].arrived == 130
