"""The outgoing channels of an operator: which readers get which events, and how one pass writes
them.

A channel is one output and one predicate: its events are written once and given to every reader
that declared the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from foretide.errors import InvalidConfig, PipelineFailed
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.declare.steps import Input, Sink
from foretide.spark.declare.wiring import Wired, first_line, stamped
from foretide.spark.edge.protocol import Outlet, Output
from foretide.spark.worker.columns import ERROR, EVENT, OPERATOR, OUT, STAMP, TO

DEAD = "dead"
DEAD_COLUMNS = (OPERATOR, ERROR, EVENT)


@dataclass(frozen=True, slots=True)
class Channel:
    """Events of one output that satisfy one predicate; every folder in ``folders`` gets them."""

    output: str | None
    predicate: str | None
    columns: tuple[str, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True)
class Channels:
    """All channels of one operator. ``written`` is the schema its function's result is written in;
    ``diverts`` adds the dead letters.
    """

    channels: tuple[Channel, ...]
    sinks: tuple[Sink, ...]
    written: StructType
    gives: Mapping[str | None, StructType]
    diverts: bool
    in_any_order: bool
    """Whether the result's columns may stand in any order: those of a DataFrame function."""

    @property
    def consumers(self) -> list[str]:
        return [f.partition(".")[2] for c in self.channels for f in c.folders]

    @property
    def _plain(self) -> bool:
        """Whether there is one channel that takes everything."""
        return (
            len(self.channels) == 1
            and not self.diverts
            and None in self.gives
            and self.channels[0].predicate is None
        )

    @property
    def outlets(self) -> dict[str, Outlet]:
        """The channels, and the dead letters, by the value of the column ``_to``."""
        outlets = {str(i): Outlet(c.columns, c.folders) for i, c in enumerate(self.channels)}
        if self.diverts:
            outlets[DEAD] = Outlet((*DEAD_COLUMNS, STAMP), (DEAD,))
        return outlets

    def write(self, frame: DataFrame, output: Output, staging: Path, per_file: int) -> None:
        """Write the result in one pass; an event that several channels take, once for each."""
        if not self.outlets:
            frame.write.format("noop").mode("overwrite").save()
            return
        if self._plain:
            if self.in_any_order:
                frame = frame.select(*self.channels[0].columns)
        else:
            going = [sf.when(self._takes(c), sf.lit(str(i))) for i, c in enumerate(self.channels)]
            if self.diverts:
                going.append(sf.when(sf.col(ERROR).isNotNull(), sf.lit(DEAD)))
            frame = frame.withColumn(TO, sf.explode(sf.array_compact(sf.array(*going))))
        output.write(frame, self.outlets, staging, per_file)

    def _takes(self, channel: Channel) -> Column:
        test = sf.lit(True)
        if self.diverts:
            test = test & sf.col(ERROR).isNull()
        if channel.output is not None:
            test = test & (sf.col(OUT) == channel.output)
        return test & sf.expr(f"({channel.predicate})") if channel.predicate else test

    def write_sinks(self, spark: SparkSession, output: Output, batch: int) -> None:
        """Hand a delivered batch to the users' own writers and remove what they took.

        This follows the delivery, so that a batch which is replayed holds the same events, also
        when the function is not deterministic.
        """
        for sink in self.sinks:
            folder, schema = f"sink.{sink.name}", self.gives[sink.input.output]
            if sink.write is None or (held := output.frame(spark, schema, folder, batch)) is None:
                continue
            try:
                sink.write(held, batch)
            except Exception as error:
                raise PipelineFailed(
                    f"the writer of sink '{sink.name}' failed on batch {batch}: {error}"
                ) from error
            output.release(batch, folder)


def declared(pipeline: Pipeline, spark: SparkSession, wired: Wired) -> Channels:
    """The channels of one operator as its readers declared them; InvalidConfig on any mistake."""
    readers = [
        (f"to.{s.name}", i)
        for s in pipeline.steps.values()
        for i in s.inputs
        if i.producer == wired.name
    ]
    sinks = tuple(k for k in pipeline.sinks.values() if k.input.producer == wired.name)
    readers += [(f"sink.{k.name}", k.input) for k in sinks]
    folders: dict[Input, list[str]] = {}
    for folder, i in readers:
        folders.setdefault(i, []).append(folder)
        if i.predicate is not None:
            _check_predicate(spark, folder, i, wired.gives[i.output])
    channels = tuple(
        Channel(i.output, i.predicate, (*wired.gives[i.output].names, STAMP), tuple(held))
        for i, held in folders.items()
    )
    in_any_order = wired.step.kind == "frame"
    return Channels(channels, sinks, _written(wired), wired.gives, wired.diverts, in_any_order)


def _written(wired: Wired) -> StructType:
    """The columns of all outputs together, the stamp, and those that say where an event goes."""
    columns: dict[str, StructField] = {}
    for schema in wired.gives.values():
        for f in schema:
            if columns.setdefault(f.name, f).dataType != f.dataType:
                raise InvalidConfig(
                    f"operator '{wired.name}': outputs disagree about column '{f.name}'; give it "
                    "one type or two names"
                )
    written = [*columns.values(), StructField(STAMP, DoubleType())]
    if None not in wired.gives:
        written.append(StructField(OUT, StringType()))
    if wired.diverts:
        written += [StructField(c, StringType()) for c in (OPERATOR, ERROR, EVENT)]
    return StructType(written)


def _check_predicate(spark: SparkSession, folder: str, given: Input, schema: StructType) -> None:
    try:
        spark.createDataFrame([], stamped(schema)).where(sf.expr(str(given.predicate)))
    except PySparkException as error:
        reader = folder.partition(".")[2]
        raise InvalidConfig(
            f"'{reader}' reads '{given.producer}' where \"{given.predicate}\", which Spark "
            f"refuses: {first_line(error)}"
        ) from error
