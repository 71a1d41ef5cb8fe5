"""Dynamic allocation as Spark documents it: waiting tasks bring executors in doubling steps, and
60 s without tasks take them away.
"""

from foretide.figures.dynamic_allocation import DynamicAllocation
from foretide.model import BatchRun, Sample, Snapshot, StageRun


def batch(at: float, wall_s: float, slots: float, tasks: int = 8) -> BatchRun:
    return BatchRun(at, wall_s + 0.3, 100, slots, (StageRun(tasks, wall_s * slots, wall_s),))


def test_tasks_that_wait_less_than_a_second_bring_nothing():
    spark = DynamicAllocation(cores=1, most=8)
    assert spark.after([batch(0.0, 1.1, slots=1)], 5.0) == 1


def test_executors_double_while_tasks_wait_and_stop_at_one_slot_per_task():
    spark = DynamicAllocation(cores=2, most=64)
    assert spark.after([batch(0.0, 2.0, slots=2)], 5.0) == 2, "1.5 s of waiting: one step"
    assert spark.after([batch(5.0, 40.0, slots=2)], 50.0) == 4, "8 tasks on 2 cores each"


def test_the_seconds_of_a_stage_follow_the_executors_it_would_have_had():
    """Measured on 4 slots in 2 waves of 0.5 s; on 1 slot the same tasks take 8 waves, 4 s, of which
    3.5 s are waiting: three steps of 1, 2 and 4 executors.
    """
    spark = DynamicAllocation(cores=1, most=8)
    assert spark.after([batch(0.0, 1.0, slots=4)], 5.0) == 8


def test_executors_stay_while_batches_go_on_and_go_after_a_minute_without():
    spark = DynamicAllocation(cores=1, most=8)
    for at in range(0, 120, 2):
        held = spark.after([batch(float(at), 0.2 if at else 6.0, slots=1)], at + 2.0)
    assert held == 8, "a task every two seconds keeps each executor from being idle"
    assert spark.after([], 150.0) == 8
    assert spark.after([], 200.0) == 1


def test_batches_of_all_queries_in_a_snapshot_count():
    samples = {
        name: Sample(arrived=1, processed=1, backlog=0, replicas=1, batch_runs=(run,))
        for name, run in {"a": batch(1.0, 0.1, 1), "b": batch(0.0, 3.0, 1)}.items()
    }
    assert DynamicAllocation(1, 3).see(Snapshot(5.0, 5.0, samples)) == 3
