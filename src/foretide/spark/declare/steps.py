"""The parts of a pipeline as records: sources, operators with their inputs, sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from foretide.balance import GROUPINGS
from foretide.balance.grouping import Grouping
from foretide.errors import InvalidConfig
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.kafka import Kafka

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Inputs = str | Sequence[str] | Mapping[str, str | None]
Kind = Literal["events", "batches", "frame"]
EdgeKind = Kafka | Literal["directory"]


@dataclass(frozen=True, slots=True)
class Source:
    """Events from outside. ``stamp`` names a column with their arrival instant; without it, the
    batch's instant is taken.
    """

    name: str
    open: Callable[[SparkSession], DataFrame] | Generator | Kafka
    stamp: str | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """One incoming edge: a producer (operator or source), perhaps one of its named outputs, perhaps
    a SQL predicate.
    """

    producer: str
    output: str | None = None
    predicate: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One declared operator. ``edges`` says what its incoming edges are, all of them or by
    producer, where they are not what the pipeline declares.
    """

    name: str
    kind: Kind
    function: Callable[..., Any]
    inputs: tuple[Input, ...]
    outputs: Mapping[str | None, str | None] = field(default_factory=dict)
    min_replicas: int = 1
    max_replicas: int = 32
    key: str | None = None
    cost: str | Sequence[str] | None = None
    grouping: str | Callable[[], Grouping] | None = None
    on_error: Literal["fail", "divert"] = "fail"
    stateful: bool | None = None
    output_mode: Literal["append", "update"] = "append"
    formerly: str | None = None
    edges: EdgeKind | Mapping[str, EdgeKind] | None = None

    def new_grouping(self, otherwise: str = "shuffle") -> Grouping:
        """The grouping of this operator: its own, by key when it has one, else the pipeline's
        (where its replicas can be measured).
        """
        grouping = self.grouping or (
            "key-hash" if self.key else "shuffle" if self.kind == "frame" else otherwise
        )
        return GROUPINGS.build(grouping) if isinstance(grouping, str) else grouping()

    def grouped_by(self, keeps_keys: bool) -> tuple[str, ...]:
        """The columns a grouping looks at: the key where it keeps keys together, else what events
        cost depends on; none: all.
        """
        columns = self.key if keeps_keys or self.cost is None else self.cost
        return () if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)


@dataclass(frozen=True, slots=True)
class Sink:
    """Where events leave. Without ``write`` they stay as parquet files in the pipeline's directory,
    exactly once.

    ``write(frame, batch_id)`` is any Spark writer; after a crash it may see a batch again: the same
    ``batch_id``, the same events.
    """

    name: str
    input: Input
    write: Callable[[DataFrame, int], None] | None = None


def check_edges(step: Step) -> None:
    """InvalidConfig when what a step says of its edges is not about them."""
    declared = step.edges
    by_producer = declared if isinstance(declared, Mapping) else {}
    producers = [i.producer for i in step.inputs]
    for producer in by_producer:
        if producer not in producers:
            raise InvalidConfig(
                f"operator '{step.name}': edges names '{producer}', which is not among its inputs: "
                f"{', '.join(producers)}"
            )
    kinds = by_producer.values() if isinstance(declared, Mapping) else [declared]
    for kind in kinds:
        if kind is not None and kind != "directory" and not isinstance(kind, Kafka):
            raise InvalidConfig(
                f"operator '{step.name}': an edge is kafka(servers) or 'directory', not {kind!r}"
            )


def parse_inputs(reader: str, given: Inputs) -> tuple[Input, ...]:
    """Inputs in any spelling: a name, ``name:output``, a list of those, or a mapping from those to
    SQL predicates.
    """
    pairs: list[tuple[str, str | None]]
    if isinstance(given, str):
        pairs = [(given, None)]
    elif isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        pairs = [(g, None) for g in given]
    if not pairs:
        raise InvalidConfig(f"'{reader}' has no inputs: name at least one source or operator")
    parsed = tuple(
        Input(p.partition(":")[0], p.partition(":")[2] or None, predicate) for p, predicate in pairs
    )
    producers = [i.producer for i in parsed]
    for p in producers:
        if producers.count(p) > 1:
            raise InvalidConfig(
                f"'{reader}' lists input '{p}' twice: read it once, with one predicate or output"
            )
    return parsed
