"""Which edges are topics and which are directories, and the mistakes in saying so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foretide.errors import InvalidConfig
from foretide.spark import Pipeline, kafka
from foretide.spark.declare.kafka import Kafka
from foretide.spark.edge.kafka_topics import prefix_in
from foretide.spark.run.edges import cluster_of

CLUSTER, OTHER = kafka("a:1"), kafka("b:1")
EDGES = [("one", "two"), ("one", "three"), ("two", "three"), ("three", "sink.out")]


def declared(edges: Kafka | None, store: str | None = None, **own: Any) -> Pipeline:
    """Three operators; ``own`` are the edges of each."""
    p = Pipeline("p", edges=edges, store=store)
    p.source("in", lambda spark: spark.readStream.format("rate").load())
    for name, inputs in {"one": "in", "two": "one", "three": ["one", "two"]}.items():
        p.operator(inputs, name=name, edges=own.get(name))(lambda event: event)
    return p


def readers(p: Pipeline) -> dict[tuple[str, str], Kafka | None]:
    return {(producer, reader): p.edge(producer, reader) for producer, reader in EDGES}


@pytest.mark.parametrize(
    ("edges", "own", "on_kafka"),
    [
        (None, {}, []),
        (CLUSTER, {}, [0, 1, 2, 3]),
        (None, {"three": CLUSTER}, [1, 2]),
        (None, {"three": {"two": CLUSTER}}, [2]),
        (CLUSTER, {"two": "directory"}, [1, 2, 3]),
        (CLUSTER, {"three": {"one": "directory"}}, [0, 2, 3]),
    ],
)
def test_an_edge_is_what_its_reader_says_else_what_the_pipeline_says(
    edges: Kafka | None, own: dict[str, Any], on_kafka: list[int]
) -> None:
    p = declared(edges, **own)
    kinds = readers(p)
    assert [i for i, edge in enumerate(EDGES) if kinds[edge] is not None] == on_kafka
    assert cluster_of(p, kinds) == (CLUSTER if on_kafka else None)


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ({"nine": CLUSTER}, "edges names 'nine', which is not among its inputs: one, two"),
        ({"one": "disk"}, r"an edge is kafka\(servers\) or 'directory', not 'disk'"),
        ("disk", r"an edge is kafka\(servers\) or 'directory', not 'disk'"),
    ],
)
def test_a_wrong_kind_is_a_sentence(own: Any, sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=f"operator 'three': {sentence}"):
        declared(None, three=own)


def test_all_topics_are_on_one_cluster() -> None:
    p = declared(CLUSTER, three={"two": OTHER})
    with pytest.raises(InvalidConfig, match="'two' to 'three' is on Kafka at b:1, another edge at"):
        cluster_of(p, readers(p))


def test_a_store_has_no_directories() -> None:
    p = declared(CLUSTER, "s3a://bucket/p", two="directory")
    with pytest.raises(InvalidConfig, match="the edge from 'one' to 'two' is a directory, and"):
        cluster_of(p, readers(p))


def test_a_folder_keeps_what_its_sinks_are(tmp_path: Path) -> None:
    prefix = prefix_in(tmp_path, "p", None, "directory")
    assert prefix_in(tmp_path, "p", None, "directory") == prefix
    with pytest.raises(InvalidConfig, match=r"the sinks in .* are files, not topics"):
        prefix_in(tmp_path, "p", None, "kafka")


def test_single_edges_of_a_folder_may_become_topics_but_not_all(tmp_path: Path) -> None:
    (tmp_path / "edges").mkdir()
    with pytest.raises(InvalidConfig, match="are directories: choose another directory"):
        prefix_in(tmp_path, "p", None)
    assert prefix_in(tmp_path, "p", None, "directory").startswith("foretide.p.")
