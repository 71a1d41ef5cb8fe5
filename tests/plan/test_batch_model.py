"""The batch model against made-up truth with noise: what it learns on some loads and slots must
hold on others.
"""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.errors import NotReady
from foretide.model import BatchRun, StageRun
from foretide.plan.batch_model import BatchModel, Line, robust_line, waves


class Truth:
    """A query whose costs are known: per stage (tasks, fixed seconds of a task, seconds per
    event).
    """

    def __init__(self, stages, serial_s, noise=0.0, seed=1):
        self.stages = stages
        self.serial_s = serial_s
        self.noise = noise
        self.rng = np.random.default_rng(seed)

    def stage_s(self, stage, events, slots):
        tasks, fixed, per_event = stage
        return math.ceil(tasks / slots) * (fixed + per_event * events / tasks)

    def seconds(self, events, slots):
        return self.serial_s + sum(self.stage_s(s, events, slots) for s in self.stages)

    def run(self, events, slots, factor=1.0):
        def noisy(value):
            return value * factor * math.exp(self.noise * self.rng.standard_normal())

        runs = [
            StageRun(t, noisy(t * f + b * events), noisy(self.stage_s((t, f, b), events, slots)))
            for t, f, b in self.stages
        ]
        return BatchRun(
            0.0, noisy(self.serial_s) + sum(s.wall_s for s in runs), events, slots, tuple(runs)
        )


stages = st.lists(
    st.tuples(st.integers(1, 32), st.floats(0.002, 0.1), st.floats(1e-4, 0.02)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=20, deadline=None)
@given(stages=stages, serial=st.floats(0.05, 1.0), seed=st.integers(0, 99))
def test_unseen_slots_and_events_are_predicted_within_15_percent(stages, serial, seed):
    """Learned on 1 to 3 slots and a fourfold range of events with 10 % noise; asked for up to 8
    slots and events beyond what was seen.
    """
    truth = Truth(stages, serial, noise=0.1, seed=seed)
    rng = np.random.default_rng(seed)
    model = BatchModel()
    for _ in range(60):
        model.observe(truth.run(float(rng.integers(100, 400)), int(rng.integers(1, 4))))
    errors = [
        abs(model.seconds(n, s) / truth.seconds(n, s) - 1)
        for n in (80.0, 150.0, 500.0, 800.0)
        for s in (1, 2, 4, 5, 8)
    ]
    assert statistics.median(errors) < 0.15
    assert model.error is not None
    assert model.error < 0.2


@pytest.mark.parametrize("seed", range(4))
def test_batches_of_nearly_one_size_do_not_make_all_cost_that_of_events(seed):
    """At a steady low rate the size of batches hardly varies and the fixed cost of tasks is most of
    their time (0.5 s, and 10 ms per event): four times the events are not four times the time.
    """
    truth = Truth([(8, 0.5, 0.01)], 0.5, noise=0.15, seed=seed)
    model = BatchModel()
    for events in np.random.default_rng(seed).integers(140, 180, 20):
        model.observe(truth.run(float(events), 4))
    assert model.seconds(160.0, 2) == pytest.approx(truth.seconds(160.0, 2), rel=0.2)
    assert model.seconds(640.0, 4) < 1.5 * truth.seconds(640.0, 4)


def test_the_cost_of_an_event_is_told_from_the_cost_of_its_task():
    """At a low rate most of a task is fixed cost: 8 tasks of 40 ms and 10 ms per event."""
    truth = Truth([(8, 0.04, 0.01)], 0.3, noise=0.03)
    model = BatchModel()
    for i in range(20):
        model.observe(truth.run(100.0 + 20 * (i % 3), 1))
    assert model.seconds(480.0, 3) == pytest.approx(truth.seconds(480.0, 3), rel=0.15)


def test_outliers_and_warm_up_do_not_spoil_it():
    truth = Truth([(8, 0.02, 0.01)], 0.3, noise=0.05)
    model = BatchModel()
    for i in range(40):
        slow = 6.0 if i < 4 else 4.0 if i % 10 == 9 else 1.0
        model.observe(truth.run(100.0 + 10 * (i % 5), 2, factor=slow))
    assert model.seconds(120.0, 2) == pytest.approx(truth.seconds(120.0, 2), rel=0.1)


def test_an_hour_at_one_load_does_not_drive_out_the_others():
    truth = Truth([(8, 0.02, 0.01)], 0.3, noise=0.05)
    model = BatchModel()
    for n, s in ((480.0, 3), (480.0, 4), (240.0, 2)) * 3:
        model.observe(truth.run(n, s))
    for _ in range(300):
        model.observe(truth.run(120.0, 1))
    assert model.seconds(480.0, 4) == pytest.approx(truth.seconds(480.0, 4), rel=0.15)


def test_costs_that_change_are_learned_anew():
    cheap, dear = Truth([(8, 0.02, 0.01)], 0.3, 0.05), Truth([(8, 0.02, 0.02)], 0.3, 0.05)
    model = BatchModel()
    for _ in range(60):
        model.observe(cheap.run(240.0, 2))
    for _ in range(20):
        model.observe(dear.run(240.0, 2))
    assert model.seconds(240.0, 2) == pytest.approx(dear.seconds(240.0, 2), rel=0.15)


@given(
    tasks=st.integers(1, 64), slots=st.integers(1, 64), more=st.integers(0, 8),
    events=st.floats(1, 1e5), extra=st.floats(0, 1e5),
)  # fmt: skip
def test_more_slots_never_take_longer_and_more_events_never_less(tasks, slots, more, events, extra):
    model = BatchModel()
    truth = Truth([(tasks, 0.01, 0.005)], 0.2, noise=0.2)
    for n in (50.0, 100.0, 200.0, 70.0):
        model.observe(truth.run(n, 2))
    assert model.seconds(events, slots + more) <= model.seconds(events, slots) + 1e-9
    assert (
        model.seconds(tasks + events + extra, slots) >= model.seconds(tasks + events, slots) - 1e-9
    )
    assert model.useful_slots() == tasks


def test_batches_without_stages_still_give_a_model():
    model = BatchModel()
    for n, s in ((100.0, 1), (200.0, 2), (400.0, 2), (300.0, 1)):
        model.observe(BatchRun(0.0, 0.5 + 0.01 * n / s, n, s))
    assert model.seconds(800.0, 4) == pytest.approx(2.5, rel=0.05)
    assert model.useful_slots() is None


def test_too_little_is_not_ready_and_empty_batches_teach_nothing():
    model = BatchModel()
    assert model.observe(BatchRun(0.0, 1.0, 0.0, 2)) is None
    assert model.observe(BatchRun(0.0, 1.0, 10.0, None)) is None
    assert (len(model), model.error) == (0, None)
    with pytest.raises(NotReady, match="0 of 2 batches seen"):
        model.seconds(10.0, 1)


def test_it_goes_on_from_what_was_saved():
    truth = Truth([(8, 0.02, 0.01), (4, 0.01, 0.001)], 0.3, noise=0.1)
    model = BatchModel()
    for n in range(100, 400, 7):
        model.observe(truth.run(float(n), 1 + n % 3))
    again = BatchModel.restored(model.state())
    assert again.seconds(500.0, 5) == model.seconds(500.0, 5)
    assert (len(again), again.error) == (len(model), model.error)


def test_a_line_keeps_its_coefficients_from_being_negative():
    falling = robust_line(
        np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0]), np.ones(3), (Line(0, 0), Line(10, 10))
    )
    assert falling.slope == 0
    assert falling.fixed > 0
    assert waves(9, 8) == 2.0
    assert waves(9, 8.9) == 1.0, "a tenth of a slot that others use does not cost a wave"
