"""Which edges a pipeline runs on: directories, or the Kafka cluster it declares."""

from __future__ import annotations

from collections.abc import Mapping

from foretide.errors import InvalidConfig, missing_extra
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.edge.protocol import Edges
from foretide.spark.run.channels import Channels
from foretide.spark.run.folder import RunFolder


def edges_of(pipeline: Pipeline, folder: RunFolder, channels: Mapping[str, Channels]) -> Edges:
    """The edges of a pipeline, ready to use: topics are there, with enough partitions."""
    if pipeline.edges is None:
        if (folder.path / "kafka.json").exists():
            raise InvalidConfig(
                f"the edges in {folder.path} are Kafka topics: declare the pipeline with "
                "edges=kafka(servers), or choose another directory"
            )
        return folder.edges
    try:
        from foretide.spark.edge.kafka import KafkaEdges, prefix_in
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise missing_extra("kafka", "edges on Kafka need confluent-kafka") from None
    declared = pipeline.edges
    edges = KafkaEdges(
        folder.kept / "edges",
        declared.servers,
        declared.options,
        lambda: prefix_in(folder.kept, pipeline.name, declared.topic),
        folder.durability,
    )
    edges.prepare(
        {
            (name, reader): _replicas(pipeline, name, reader)
            for name, outgoing in channels.items()
            for outlet in outgoing.outlets.values()
            for reader in outlet.folders
        }
    )
    return edges


def _replicas(pipeline: Pipeline, producer: str, reader: str) -> int:
    """Replicas that write to, or read from, one reader's topic, at most."""
    most = pipeline.steps[producer].max_replicas
    if reader.startswith("to."):
        most = max(most, pipeline.steps[reader.removeprefix("to.")].max_replicas)
    return most
