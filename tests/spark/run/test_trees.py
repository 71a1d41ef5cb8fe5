"""Inputs followed to their completion: by counting what came of them, loops included."""

import random

import numpy as np
import pytest

from foretide.spark.run.gaps import NO_GAPS, gaps, scv
from foretide.spark.run.trees import MOST, Trees, merged
from foretide.spark.worker.traces import DROPPED, Trace, count, followed


def trace(taken: int, **given: int) -> Trace:
    return Trace(taken, {None if o == "only" else o: n for o, n in given.items()})


def mean_s(trees: Trees) -> float:
    done = trees.take()
    assert done is not None
    assert done.count == 1
    return done.mean_ms / 1e3


def test_an_input_is_complete_with_the_last_of_its_branches() -> None:
    trees = Trees({"split": {"left": 1, "right": 2}, "a": {}, "b": {}, "c": {}}, ["split"])
    trees.delivered("split", {10.0: trace(1, left=1, right=1)}, now=11.0)
    trees.delivered("a", {10.0: trace(1)}, now=12.0)
    trees.delivered("b", {10.0: trace(1)}, now=16.0)
    assert trees.take() is None
    trees.delivered("c", {10.0: trace(1)}, now=15.0)
    assert mean_s(trees) == pytest.approx(5.0)


def test_loops_need_no_special_care() -> None:
    trees = Trees({"first": {None: 1}, "second": {"back": 1, "out": 0}}, ["first"])
    for at in (1.0, 2.0, 3.0):
        trees.delivered("first", {0.5: trace(1, only=1)}, now=at)
        assert trees.take() is None
        trees.delivered("second", {0.5: trace(1, back=at < 3, out=at == 3)}, now=at + 0.5)
    assert mean_s(trees) == pytest.approx(3.0)


def test_random_trees_complete_exactly_when_their_last_event_is_done() -> None:
    rng = random.Random(4)
    trees = Trees({"source": {None: 1}, "work": {"on": 1}}, ["source"])
    waiting, at = {}, 0.0
    for stamp in map(float, range(200)):
        waiting[stamp] = rng.randint(0, 3)
        trees.delivered("source", {stamp: trace(1, only=waiting[stamp])}, now=stamp)
    ended = {s: s for s, n in waiting.items() if n == 0}
    while open_now := [s for s, n in waiting.items() if n]:
        at += 1.0
        stamp = rng.choice(open_now)
        more = rng.random() < 0.3
        waiting[stamp] += more - 1
        trees.delivered("work", {stamp: trace(1, on=int(more))}, now=300.0 + at)
        if not waiting[stamp]:
            ended[stamp] = 300.0 + at
    done = trees.take()
    assert done is not None
    assert done.count == 200
    assert done.mean_ms / 1e3 == pytest.approx(np.mean([end - s for s, end in ended.items()]))


def test_what_began_before_the_start_and_shared_stamps_are_left_out() -> None:
    trees = Trees({"source": {None: 1}, "work": {}}, ["source"])
    trees.delivered("work", {1.0: trace(1)}, now=2.0)
    trees.delivered("source", {3.0: trace(2)}, now=4.0)
    assert trees.take() is None


def test_inputs_that_never_end_are_forgotten_in_the_end() -> None:
    trees = Trees({"source": {None: 1}}, ["source"])
    for i in range(MOST + 10):
        trees.delivered("source", {float(i): trace(1, only=1)}, now=0.0)
    assert len(trees._open) == MOST


def test_one_stamp_in_n_is_followed_and_the_same_everywhere() -> None:
    stamps = np.linspace(1.7e9, 1.7e9 + 1000, 50_000)
    chosen = followed(stamps, 10)
    assert len(chosen) == pytest.approx(5000, rel=0.05)
    part = followed(stamps[chosen], 10)
    assert len(part) == len(chosen)


def test_a_task_counts_what_it_took_and_gave() -> None:
    counted: dict[float, Trace] = {}
    given = np.array([1.0, 1.0, 2.0])
    count(counted, np.array([1.0, 2.0, 2.5]), given, ["a", "b", DROPPED], every=1)
    assert counted == {1.0: trace(1, a=1, b=1), 2.0: trace(1), 2.5: trace(1)}
    assert merged([counted, counted])[1.0] == trace(2, a=2, b=2)


def test_the_variation_of_arrivals_is_that_of_the_gaps() -> None:
    rng = np.random.default_rng(3)
    at = np.cumsum(rng.exponential(0.1, 5000))
    singles = scv([gaps([(float(t), 1) for t in at], None)])
    assert singles == pytest.approx(1.0, abs=0.1)
    batches = gaps([(float(i), 8) for i in range(100)], None)
    assert scv([batches]) == pytest.approx(7.0, rel=0.1)
    assert scv([NO_GAPS]) is None
