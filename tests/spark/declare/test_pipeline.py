"""Declarations: what reads like PySpark works, every mistake is an error before anything starts."""

import pkgutil
from typing import Any

import numpy as np
import pytest

import foretide.spark
from foretide.errors import InvalidConfig, InvalidTopology
from foretide.load import Load
from foretide.spark import Generator, Pipeline


def same(event: Any) -> Any:
    return event


@pytest.fixture
def pipeline() -> Pipeline:
    p = Pipeline("p")
    p.source("src", lambda spark: spark.readStream.format("rate").load(), stamp="timestamp")
    p.operator(inputs="src", name="a", outputs={"good": "id long", "bad": "id long, why string"})(
        same
    )
    return p


def test_the_topology_of_splits_joins_and_loops(pipeline: Pipeline) -> None:
    pipeline.operator(inputs={"a:good": "id > 3"}, name="b", max_replicas=4)(same)
    pipeline.operator(inputs=["b", "a:good", "c"], name="c")(same)
    pipeline.sink("out", inputs="c")
    t = pipeline.topology()
    assert t.edges == (("a", "b"), ("b", "c"), ("a", "c"), ("c", "c"))
    assert (t.sources, t.sinks, t.has_loop, t["b"].max_replicas) == (("a",), ("c",), True, 4)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (
            lambda p: p.operator(inputs="nobody", name="b")(same),
            "reads from 'nobody', which does not exist; known: src, a",
        ),
        (
            lambda p: p.operator(inputs="a", name="b")(same),
            "output 'None' of 'a', which does not exist; write 'a:NAME'.*good, bad",
        ),
        (lambda p: p.operator(inputs="a:ugly", name="b")(same), "output 'ugly' of 'a'"),
        (lambda p: p.operator(inputs="src", name="a")(same), "already has a part named 'a'"),
        (lambda p: p.sink("src", inputs="a:good"), "already has a part named 'src'"),
        (lambda p: p.operator(inputs=["a:good", "a:bad"], name="b")(same), "lists input 'a' twice"),
        (lambda p: p.operator(inputs=[], name="b")(same), "has no inputs"),
        (
            lambda p: p.operator(inputs={"src": "id > 1"}, name="b")(same),
            "an operator reads it, whole",
        ),
        (lambda p: p.sink("out", inputs=["a:good", "src"]), "one sink per input"),
        (lambda p: p.sink("out", inputs="src"), "an operator reads it, whole"),
        (
            lambda p: p.operator(inputs="src", name="b", min_replica=2),
            "unknown operator setting 'min_replica'; did you mean",
        ),
        (
            lambda p: p.operator(inputs="src", name="b", on_error="ignore"),
            "unknown on_error 'ignore'",
        ),
        (
            lambda p: p.operator(inputs="src", name="b", grouping="shufle"),
            "unknown grouping 'shufle'; did you mean 'shuffle'",
        ),
        (
            lambda p: p.operator(inputs="src", name="b", stateful=True),
            "'stateful' is for DataFrame functions",
        ),
        (
            lambda p: p.frame(inputs="src", name="b", on_error="divert"),
            "cannot divert single events",
        ),
    ],
)
def test_mistakes_are_sentences(pipeline: Pipeline, declare: Any, message: str) -> None:
    def declared() -> None:
        declare(pipeline)
        pipeline.topology()

    with pytest.raises(InvalidConfig, match=message):
        declared()


def test_generated_loads_are_scaled_and_replayed_at_another_speed(pipeline: Pipeline) -> None:
    with pytest.raises(InvalidConfig, match="pipeline 'p' reads none"):
        pipeline.rescale(2.0)
    pipeline.source("load", Load("steps", np.array([10.0, 20.0]), interval_s=60.0))
    pipeline.rescale(scale=0.5, speed=4.0)
    found = pipeline.sources["load"].open
    assert isinstance(found, Generator)
    assert (found.timetable.counts, found.timetable.interval_s) == ((5, 10), 0.25)
    with pytest.raises(InvalidConfig, match="--scale 0"):
        pipeline.rescale(scale=0.0)


def test_impossible_replicas_and_names_are_refused_at_once(pipeline: Pipeline) -> None:
    with pytest.raises(InvalidTopology, match="min_replicas 3 and max_replicas 2"):
        pipeline.operator(inputs="src", name="b", min_replicas=3, max_replicas=2)(same)
    with pytest.raises(InvalidTopology, match="must be letters"):
        pipeline.operator(inputs="src", name="b c")(same)


def test_no_exported_name_is_also_a_module_s() -> None:
    """An import of the module elsewhere would put it in the place of what is exported."""
    modules = {m.name for m in pkgutil.iter_modules(foretide.spark.__path__)}
    assert modules.isdisjoint(foretide.spark.__all__)


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", ".hidden"])
def test_a_name_is_never_a_path(name: str) -> None:
    with pytest.raises(InvalidConfig, match="a folder is called after it"):
        Pipeline(name)
    with pytest.raises(InvalidConfig, match="a folder is called after it"):
        Pipeline("p").sink(name, inputs="a")
