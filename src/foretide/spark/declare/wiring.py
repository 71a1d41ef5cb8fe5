"""Wiring: from the declaration to operators with known inputs and schemas. Every mistake is an
error here.

Needs a session (Spark parses schemas, predicates and DataFrame functions) but starts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, DoubleType, StructField, StructType

from foretide.errors import InvalidConfig
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.kafka import Kafka
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.declare.steps import Source, Step
from foretide.spark.worker.columns import RESERVED, STAMP, UNPARSED
from foretide.spark.worker.work import MARK

_STATEFUL = re.compile(
    r"^[\s:+~-]*(Aggregate|Deduplicate|FlatMapGroups|TransformWithState|GlobalLimit|Distinct)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Wired:
    """One operator ready to start. ``takes`` and ``gives`` are without the stamp; ``gives`` has a
    schema per named output.
    """

    step: Step
    sources: tuple[Source, ...]
    producers: tuple[str, ...]
    takes: StructType
    gives: Mapping[str | None, StructType]
    stateful: bool
    timeout_s: float | None = None
    queue_limit: int | None = None

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def diverts(self) -> bool:
        """Whether it has dead letters: events that failed, were too old or too many."""
        return self.step.on_error == "divert" or self.drops

    @property
    def drops(self) -> bool:
        """Whether events can be too old or too many."""
        return self.timeout_s is not None or self.queue_limit is not None

    @property
    def stamped_late(self) -> bool:
        """Whether its tasks stamp the events with the batch's instant themselves.

        As a column that instant would be a constant in Spark's generated code: new code to compile
        in every batch, and never warm.
        """
        return (
            self.step.kind != "frame"
            and not self.producers
            and all(s.stamp is None for s in self.sources)
        )


def stamped(schema: StructType) -> StructType:
    """The schema of events on an edge."""
    return StructType([*schema.fields, StructField(STAMP, DoubleType())])


def open_source(spark: SparkSession, source: Source, started_at: float) -> DataFrame:
    """The source as a streaming DataFrame with the stamp, and with ``_unparsed`` where some of its
    records may not parse.
    """
    ours: tuple[str, ...] = ()
    if isinstance(source.open, Generator):
        frame = source.open.stream(spark, started_at)
    elif isinstance(source.open, Kafka):
        frame = source.open.stream(spark)
        ours = (STAMP, UNPARSED)
    else:
        frame = source.open(spark)
        if not isinstance(frame, DataFrame) or not frame.isStreaming:
            raise InvalidConfig(
                f"source '{source.name}' must give a streaming DataFrame (spark.readStream...)"
            )
    if source.stamp is not None and source.stamp not in frame.columns:
        known = ", ".join(frame.columns)
        raise InvalidConfig(
            f"source '{source.name}' has no column '{source.stamp}' to take stamps from; its "
            f"columns: {known}"
        )
    _refuse_reserved(
        f"source '{source.name}'", [c for c in frame.columns if c not in (source.stamp, *ours)]
    )
    stamp = sf.col(source.stamp) if source.stamp else sf.current_timestamp()
    return frame.withColumn(STAMP, stamp.cast("double"))


def wire(pipeline: Pipeline, spark: SparkSession) -> dict[str, Wired]:
    """Every operator with its schemas, in topological order; InvalidConfig on any mistake."""
    order = pipeline.topology().order
    for s in pipeline.sources.values():
        if isinstance(s.open, Kafka):
            s.open.check_source(spark, s.name)
    opened = {n: _bare(open_source(spark, s, 0.0).schema) for n, s in pipeline.sources.items()}
    gives: dict[str, Mapping[str | None, StructType]] = {}
    wired: dict[str, Wired] = {}
    for name in order:
        step = pipeline.steps[name]
        takes = _takes(pipeline, step, opened, gives)
        gives[name], stateful = _gives(spark, step, takes)
        drops = step.kind != "frame"
        wired[name] = Wired(
            step,
            tuple(
                pipeline.sources[i.producer] for i in step.inputs if i.producer in pipeline.sources
            ),
            tuple(i.producer for i in step.inputs if i.producer in pipeline.steps),
            takes,
            gives[name],
            stateful,
            pipeline.timeout_s if drops else None,
            pipeline.queue_limit if drops else None,
        )
    for w in wired.values():
        for i in w.step.inputs:
            _same(
                w.name,
                i.producer,
                w.takes,
                opened[i.producer] if i.producer in opened else gives[i.producer][i.output],
            )
    for k in pipeline.sinks.values():
        if isinstance(k.write, Kafka):
            k.write.check_sink(spark, k.name, gives[k.input.producer][k.input.output])
    return wired


def source_part(frame: DataFrame, wired: Wired) -> DataFrame:
    """One source's share of an operator's input. A function per event or per record batch gets
    ``_unparsed`` with it; a DataFrame function cannot divert, so a record that does not parse stops
    the pipeline.
    """
    taken = wired.takes if wired.stamped_late else stamped(wired.takes)
    if UNPARSED not in frame.columns:
        return frame.select(*taken.names)
    if wired.step.kind != "frame":
        return frame.select(*taken.names, UNPARSED)
    said = sf.concat(
        sf.lit(f"{MARK}operator '{wired.name}': "),
        sf.col(UNPARSED),
        sf.lit("; read such a topic with operator or batches and on_error='divert'" + MARK),
    )
    parses = sf.when(sf.col(UNPARSED).isNull(), True).otherwise(
        sf.raise_error(said).cast("boolean")
    )
    return frame.where(parses).select(*taken.names)


def _takes(
    pipeline: Pipeline,
    step: Step,
    opened: Mapping[str, StructType],
    gives: Mapping[str, Mapping[str | None, StructType]],
) -> StructType:
    """The schema an operator takes: that of its first input that is known (an edge that closes a
    loop is not, yet).
    """
    for i in step.inputs:
        if i.producer in opened:
            return opened[i.producer]
        if i.producer in gives:
            return gives[i.producer][i.output]
    raise InvalidConfig(
        f"operator '{step.name}': no input's schema is known; give its producer a schema"
    )


def _gives(
    spark: SparkSession, step: Step, takes: StructType
) -> tuple[Mapping[str | None, StructType], bool]:
    given: dict[str | None, StructType] = {}
    for output, ddl in step.outputs.items():
        try:
            given[output] = takes if ddl is None else _checked(step.name, StructType.fromDDL(ddl))
        except PySparkException as error:
            raise InvalidConfig(
                f"operator '{step.name}': schema '{ddl}' cannot be read: {first_line(error)}"
            ) from error
    if step.key is not None and step.key not in takes.names:
        raise InvalidConfig(
            f"operator '{step.name}': key column '{step.key}' is not among its input's: "
            f"{', '.join(takes.names)}"
        )
    for column in step.grouped_by(keeps_keys=False):
        if column not in takes.names:
            raise InvalidConfig(
                f"operator '{step.name}': cost column '{column}' is not among its input's: "
                f"{', '.join(takes.names)}"
            )
    if step.kind != "frame":
        return given, False
    example = (
        spark.readStream.format("rate")
        .load()
        .select(*[sf.lit(None).cast(f.dataType).alias(f.name) for f in stamped(takes)])
    )
    result = apply_frame(step, example)
    plan = str(result._jdf.queryExecution().analyzed())
    stateful = bool(_STATEFUL.search(plan)) if step.stateful is None else step.stateful
    schema = _bare(result.schema)
    _refuse_reserved(f"operator '{step.name}'", schema.names)
    if step.outputs[None] is not None:
        _same(step.name, "its own schema", given[None], schema)
    return {None: schema}, stateful


def apply_frame(step: Step, frame: DataFrame) -> DataFrame:
    """A DataFrame function's result, with a sentence when the function or Spark's analysis of it
    fails.
    """
    try:
        result = step.function(frame)
    except Exception as error:
        raise InvalidConfig(
            f"operator '{step.name}' fails on its input's columns ({', '.join(frame.columns)}): "
            f"{error}"
        ) from error
    if not isinstance(result, DataFrame):
        raise InvalidConfig(
            f"operator '{step.name}' must return a DataFrame, it returned {type(result).__name__}"
        )
    return result


def _same(reader: str, producer: str, takes: StructType, comes: StructType) -> None:
    wanted, actual = {f.name: f.dataType for f in takes}, {f.name: f.dataType for f in comes}
    if wanted == actual:
        return
    odd = [
        f"'{c}' is {actual[c].simpleString() if c in actual else 'missing'}, "
        f"expected {wanted[c].simpleString() if c in wanted else 'no such column'}"
        for c in dict.fromkeys((*wanted, *actual))
        if wanted.get(c) != actual.get(c)
    ]
    raise InvalidConfig(f"'{reader}' cannot read from '{producer}': {'; '.join(odd)}")


def _checked(name: str, schema: DataType) -> StructType:
    assert isinstance(schema, StructType)
    _refuse_reserved(f"operator '{name}'", schema.names)
    return _bare(schema)


def _refuse_reserved(what: str, columns: Sequence[str]) -> None:
    for column in columns:
        if column in RESERVED:
            raise InvalidConfig(f"{what}: column '{column}' is reserved; rename it")


def _bare(schema: DataType) -> StructType:
    """The schema without the stamp; any value may be missing, also inside arrays and structs, as in
    the files of an edge.
    """
    assert isinstance(schema, StructType)
    return StructType([f for f in schema.toNullable() if f.name not in (STAMP, UNPARSED)])


def first_line(error: Exception) -> str:
    """The first line of an error's text, or its type when it has none."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
