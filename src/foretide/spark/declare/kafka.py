"""Kafka topics as sources and sinks of a pipeline.

A source reads with Spark's own connector. Events come from JSON or Avro values, or are the record's
plain columns; their stamp is the record's timestamp. A record that does not parse is marked, and
the operator that reads the source treats it as it treats an event its function fails on. Offsets
are counted, so what waits in the topic is exact.

A sink writes JSON values or plain columns. Options go to Spark and to the Kafka client untouched;
they hold passwords, so nothing here prints them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import and_
from typing import Any, Literal

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from foretide.errors import InvalidConfig, unknown
from foretide.spark.declare.kafka_admin import admin
from foretide.spark.worker.columns import STAMP, UNPARSED

Format = Literal["json", "avro", "plain"]
Starting = str | float | datetime | Mapping[int, int]
PLAIN = ("key", "value", "topic", "partition", "offset", "timestamp")
TEXT = 200
"""Characters of a record that does not parse that its dead letter shows."""


@dataclass(frozen=True)
class Kafka:
    """A cluster, and perhaps one topic in it; made by ``kafka``."""

    servers: str
    topic: str | None = None
    format: Format = "plain"
    schema: str | None = None
    key: str | None = None
    starting: Starting = "latest"
    max_events_per_batch: int | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    sink: str = field(default="", repr=False)
    """Pipeline and sink, for the header of what is written."""

    def stream(self, spark: SparkSession) -> DataFrame:
        """The topic as a streaming DataFrame: the events' columns, the stamp, and what did not
        parse.
        """
        reader = spark.readStream.format("kafka").options(**self._reader_options())
        try:
            records = reader.load()
        except PySparkException as error:
            raise InvalidConfig(
                f"topic '{self.topic}' cannot be opened: {_first_line(error)}"
            ) from None
        stamp = sf.col("timestamp").cast("double").alias(STAMP)
        if self.format == "plain":
            text = [sf.col(c).cast("string").alias(c) for c in ("key", "value")]
            return records.select(*text, *PLAIN[2:], stamp)
        value = sf.col("value")
        event, failed = self._json(value) if self.format == "json" else self._avro(value)
        named = records.select(event.alias("e"), failed.alias(UNPARSED), stamp)
        columns = [sf.col(f"e.`{f.name}`") for f in self._fields(spark)]
        return named.select(*columns, UNPARSED, STAMP)

    def _json(self, value: Column) -> tuple[Column, Column]:
        schema = f"{self.schema}, {UNPARSED} string"
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": UNPARSED}
        event = sf.from_json(value.cast("string"), schema, options)
        return event, sf.when(
            value.isNull() | event.isNull() | event[UNPARSED].isNotNull(), self._described(value)
        )

    def _avro(self, value: Column) -> tuple[Column, Column]:
        from pyspark.sql.avro.functions import from_avro

        event = from_avro(value, str(self.schema), {"mode": "PERMISSIVE"})
        # Spark gives an event without any value for a record it cannot read.
        fields = json.loads(str(self.schema))["fields"]
        required = [f["name"] for f in fields if "null" not in f["type"]]
        checked = required[:1] or [f["name"] for f in fields]
        empty = reduce(and_, [event[name].isNull() for name in checked])
        return event, sf.when(value.isNull() | event.isNull() | empty, self._described(value))

    def _described(self, value: Column) -> Column:
        """Which record it is, and how it begins."""
        text = sf.coalesce(sf.left(value.cast("string"), sf.lit(TEXT)), sf.lit("no value"))
        return sf.format_string(
            f"record %s of partition %s of topic {self.topic} is not {self.format.upper()} of the "
            "declared schema: %s", sf.col("offset"), sf.col("partition"), text
        )  # fmt: skip

    def _fields(self, spark: SparkSession) -> StructType:
        if self.format == "json":
            declared = StructType.fromDDL(str(self.schema))
            assert isinstance(declared, StructType)
            return declared
        from pyspark.sql.avro.functions import from_avro

        example = spark.range(0).select(
            from_avro(sf.lit(b"").cast("binary"), str(self.schema)).alias("e")
        )
        found = example.schema["e"].dataType
        assert isinstance(found, StructType)
        return found

    def _reader_options(self) -> dict[str, str]:
        given = {"kafka.bootstrap.servers": self.servers, "subscribe": str(self.topic)}
        if self.max_events_per_batch is not None:
            given["maxOffsetsPerTrigger"] = str(self.max_events_per_batch)
        return {**given, **_starting(str(self.topic), self.starting), **self.options}

    def need_topic(self, what: str) -> str:
        """The topic; InvalidConfig when only a cluster was named, or a source has no schema."""
        if self.topic is None:
            raise InvalidConfig(f"{what}: name the topic first: kafka(topic, servers)")
        if self.schema is None and self.format != "plain" and what.startswith("source"):
            raise InvalidConfig(f"{what}: format '{self.format}' needs a schema")
        return self.topic

    def check_source(self, spark: SparkSession, name: str) -> int:
        """The topic's partitions; InvalidConfig when it cannot be a source."""
        partitions = self._existing(spark, f"source '{name}'")
        if isinstance(self.starting, Mapping) and set(self.starting) != set(range(partitions)):
            raise InvalidConfig(
                f"source '{name}': topic '{self.topic}' has the partitions 0 to {partitions - 1}; "
                "give a starting offset for each (-2: earliest, -1: latest)"
            )
        return partitions

    def check_sink(self, spark: SparkSession, name: str, schema: StructType) -> None:
        """InvalidConfig when the topic cannot take events of this schema."""
        what = f"sink '{name}'"
        if self.format == "avro" and not self.schema:
            raise InvalidConfig(f"{what}: format 'avro' needs the Avro schema (schema='{{...}}')")
        if self.format == "plain":
            _check_plain(what, schema)
        elif self.key is not None and self.key not in schema.names:
            raise InvalidConfig(
                f"{what}: key column '{self.key}' is not among its input's: "
                f"{', '.join(schema.names)}"
            )
        self._existing(spark, what)

    def _existing(self, spark: SparkSession, what: str) -> int:
        topic = self.need_topic(what)
        with admin(spark, self.servers, self.options) as cluster:
            partitions = cluster.partitions(topic)
        if partitions is None:
            raise InvalidConfig(
                f"{what}: there is no topic '{self.topic}' at {self.servers}: create it, or check "
                "its name"
            )
        return partitions

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write one delivered batch. Only the newest batch can come again, after a crash, and is
        written again then: the headers of every record name the sink and the batch.
        """
        headers = {"foretide-sink": self.sink, "foretide-batch": str(batch)}
        header = sf.array(
            *(
                sf.struct(sf.lit(k).alias("key"), sf.lit(v).cast("binary").alias("value"))
                for k, v in headers.items()
            )
        )
        records = self._records(frame).withColumn("headers", header)
        options = {"kafka.bootstrap.servers": self.servers, "includeHeaders": "true"}
        writer = records.write.format("kafka").options(**{**options, **self.options})
        writer.option("topic", str(self.topic)).save()

    def _records(self, frame: DataFrame) -> DataFrame:
        if self.format == "plain":
            return frame.select(*[c for c in ("key", "value", "partition") if c in frame.columns])
        event = sf.struct(*[sf.col(f"`{c}`") for c in frame.columns if c != STAMP])
        if self.format == "json":
            value = sf.to_json(event, {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"})
        else:
            from pyspark.sql.avro.functions import to_avro

            value = to_avro(event, str(self.schema))
        key = [] if self.key is None else [sf.col(f"`{self.key}`").cast("string").alias("key")]
        return frame.select(value.alias("value"), *key)


def kafka(
    *where: str,
    format: Format | None = None,  # noqa: A002
    schema: str | None = None,
    key: str | None = None,
    starting: Starting = "latest",
    max_events_per_batch: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Kafka:
    """``kafka(topic, servers)`` is a source or a sink; ``kafka(servers)`` carries a pipeline's
    edges.

    ``schema`` describes the values: columns for JSON (``"id long, text string"``), an Avro schema
    for ``format="avro"``. Without it a source gives ``key``, ``value`` (as text), ``topic``,
    ``partition``, ``offset`` and ``timestamp``, and a sink takes ``value`` and perhaps ``key`` and
    ``partition``. ``starting`` counts at the pipeline's first start: ``"latest"``, ``"earliest"``,
    an instant, or an offset per partition. ``options`` go to Spark's connector and, those that
    begin with ``kafka.``, to the Kafka client, untouched.

    >>> kafka("clicks", "broker:9092", schema="id long").format
    'json'
    >>> kafka("a:1", options={"kafka.sasl.jaas.config": "secret"})
    Kafka(servers='a:1', topic=None, format='plain', schema=None, key=None, starting='latest', \
max_events_per_batch=None)
    """
    if len(where) not in (1, 2):
        raise InvalidConfig("kafka takes kafka(topic, servers), or kafka(servers) for edges")
    topic, servers = (None, where[0]) if len(where) == 1 else where
    if ":" not in servers:
        raise InvalidConfig(
            f"'{servers}' is not a list of Kafka servers: write host:port,host:port"
        )
    chosen = format or ("json" if schema else "plain")
    if chosen not in ("json", "avro", "plain"):
        raise unknown("Kafka format", chosen, ("json", "avro", "plain"))
    if chosen == "avro" and schema is not None:
        _check_avro(schema)
    if chosen == "plain" and schema is not None:
        raise InvalidConfig("plain records have columns of their own: leave out schema or format")
    _starting("t", starting)
    given = {k: str(v) for k, v in (options or {}).items()}
    return Kafka(servers, topic, chosen, schema, key, starting, max_events_per_batch, given)


def _check_avro(schema: str) -> None:
    try:
        parsed = json.loads(schema)
        ok = parsed["type"] == "record" and len(parsed["fields"]) > 0
    except (ValueError, KeyError, TypeError):
        ok = False
    if not ok:
        raise InvalidConfig("an Avro schema is JSON of a record with at least one field")


def _check_plain(what: str, schema: StructType) -> None:
    types = {f.name: f.dataType for f in schema}
    if not isinstance(types.get("value"), StringType | BinaryType):
        raise InvalidConfig(
            f"{what}: plain records need a column 'value' of type string or binary; its input has "
            f"{', '.join(_typed(f) for f in schema)}. Or write JSON: kafka(..., format='json')"
        )
    for name in types:
        if name not in ("key", "value", "partition", STAMP):
            raise InvalidConfig(
                f"{what}: a plain record has no place for column '{name}', only for key, value and "
                "partition. Or write JSON: kafka(..., format='json')"
            )


def _typed(f: StructField) -> str:
    return f"{f.name} {f.dataType.simpleString()}"


def _starting(topic: str, starting: Starting) -> dict[str, str]:
    """Spark's option for where to begin.

    >>> _starting("t", {0: 5, 1: -2})
    {'startingOffsets': '{"t": {"0": 5, "1": -2}}'}
    >>> _starting("t", 12.5)
    {'startingTimestamp': '12500'}
    """
    if isinstance(starting, Mapping):
        return {"startingOffsets": json.dumps({topic: {str(p): o for p, o in starting.items()}})}
    if isinstance(starting, datetime):
        return {"startingTimestamp": str(round(starting.timestamp() * 1000))}
    if isinstance(starting, (int, float)):
        return {"startingTimestamp": str(round(starting * 1000))}
    if starting not in ("latest", "earliest"):
        raise unknown("starting point", starting, ("latest", "earliest"))
    return {"startingOffsets": starting}


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
