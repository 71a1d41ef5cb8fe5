from foretide.history import History
from foretide.model import Sample, Snapshot
from foretide.plan.promise.limits import most_useful
from foretide.topology import Operator, Topology

A = Operator("a", max_replicas=20)


def history(*samples: Sample) -> History:
    past = History(Topology((A,)))
    for i, sample in enumerate(samples):
        past.append(Snapshot(10.0 * (i + 1), 10.0, {"a": sample}))
    return past


def saturated(replicas: int, processed: float, times: int = 3) -> list[Sample]:
    return [Sample(processed, processed, 10 * processed, replicas)] * times


def test_replicas_that_did_not_raise_the_throughput_are_not_asked_for() -> None:
    seen = history(*saturated(2, 100.0), *saturated(4, 200.0), *saturated(8, 201.0))
    assert most_useful(A, seen, 20) == (4, "its measured throughput")


def test_an_idle_operator_shows_no_limit() -> None:
    idle = history(*(Sample(100, 100, 0, r) for r in (1, 1, 1, 4, 4, 4)))
    assert most_useful(A, idle, 20) == (20, "its maximum")


def test_partitions_limit_a_source() -> None:
    seen = history(Sample(1, 1, 0, 1, max_parallelism=3))
    assert most_useful(A, seen, 20) == (3, "its parallelism")
    assert most_useful(Operator("a", min_replicas=5, max_replicas=20), seen, 20)[0] == 5
