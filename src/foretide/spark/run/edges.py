"""Which edges a pipeline runs on: directories, the Kafka cluster it declares, or some of each."""

from __future__ import annotations

from collections.abc import Mapping

from foretide.errors import InvalidConfig, missing_extra
from foretide.spark.declare.kafka import Kafka
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.edge.protocol import Edges
from foretide.spark.run.channels import Channels
from foretide.spark.run.folder import RunFolder

Reader = tuple[str, str]
"""An operator, and the folder of one of its readers: ``to.<consumer>``, ``sink.<name>``, ``dead``.
"""


def edges_of(pipeline: Pipeline, folder: RunFolder, channels: Mapping[str, Channels]) -> Edges:
    """The edges of a pipeline, ready to use: topics are there, with enough partitions."""
    readers = {
        (name, reader): pipeline.edge(name, reader.removeprefix("to."))
        for name, outgoing in channels.items()
        for outlet in outgoing.outlets.values()
        for reader in outlet.folders
    }
    declared = cluster_of(pipeline, readers)
    if declared is None:
        if (folder.path / "kafka.json").exists():
            raise InvalidConfig(
                f"the edges in {folder.path} are Kafka topics: declare the pipeline with "
                "edges=kafka(servers), or choose another directory"
            )
        return folder.edges
    try:
        from foretide.spark.edge.kafka import KafkaEdges
        from foretide.spark.edge.kafka_topics import prefix_in
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise missing_extra("kafka", "edges on Kafka need confluent-kafka") from None
    sinks = "directory" if pipeline.edges is None else "kafka"
    edges = KafkaEdges(
        folder.kept / "edges",
        declared.servers,
        declared.options,
        lambda: prefix_in(folder.kept, pipeline.name, declared.topic, sinks),
        folder.durability,
        [reader for reader, cluster in readers.items() if cluster is None],
    )
    edges.prepare({reader: _replicas(pipeline, *reader) for reader in readers})
    return edges


def cluster_of(pipeline: Pipeline, readers: Mapping[Reader, Kafka | None]) -> Kafka | None:
    """The one cluster of all edges that are topics; None where none is. InvalidConfig where there
    are two, or where a directory cannot be.
    """
    declared = pipeline.edges
    for (producer, reader), cluster in readers.items():
        where = f"the edge from '{producer}' to '{reader.removeprefix('to.')}'"
        if cluster is None and pipeline.store is not None:
            raise InvalidConfig(
                f"{where} is a directory, and a pipeline with a store has no disk that all "
                "machines share: put it on Kafka"
            )
        if cluster is not None and declared is not None and cluster != declared:
            raise InvalidConfig(
                f"{where} is on Kafka at {cluster.servers}, another edge at {declared.servers}: "
                "declare the same kafka(...) for all edges that are topics"
            )
        declared = declared or cluster
    return declared


def _replicas(pipeline: Pipeline, producer: str, reader: str) -> int:
    """Replicas that write to, or read from, one reader's topic, at most."""
    most = pipeline.steps[producer].max_replicas
    if reader.startswith("to."):
        most = max(most, pipeline.steps[reader.removeprefix("to.")].max_replicas)
    return most
