"""Tasks on chosen executors: a DataFrame of one row per replica, each with its preferred location.

``SparkContext.makeRDD`` takes preferred locations per partition; a narrow plan on top of it
(``mapInArrow``, a write) keeps them. Spark waits ``spark.locality.wait`` for a slot there and falls
back to any other executor when that one is gone.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from foretide.model import Move

SETTINGS: Mapping[str, str] = {
    # A task waits for a slot of its own executor rather than run elsewhere ...
    "spark.locality.wait": "30s",
    # ... which only tasks of placed operators should do.
    "spark.shuffle.reduceLocality.enabled": "false",
}
_ROWS = StructType([StructField("replica", IntegerType()), StructField("files", StringType())])


def placed_frame(spark: SparkSession, files: Sequence[str], locations: Sequence[str]) -> DataFrame:
    """One partition per location, in order; each holds its number and the files."""
    jvm: Any = spark.sparkContext._jvm
    scala = jvm.scala.jdk.javaapi.CollectionConverters
    listed = json.dumps(list(files))
    pairs = []
    for replica, location in enumerate(locations):
        values = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 2)  # type: ignore[union-attr]
        values[0], values[1] = replica, listed
        row = jvm.org.apache.spark.sql.RowFactory.create(values)
        where = scala.asScala(jvm.java.util.Collections.singletonList(location)).toSeq()
        pairs.append(jvm.scala.Tuple2(row, where))
    together = jvm.java.util.ArrayList()
    for pair in pairs:
        together.add(pair)
    kind = jvm.java.lang.Class.forName("org.apache.spark.sql.Row")
    tag = jvm.scala.reflect.ClassTag.apply(kind)
    rdd = spark.sparkContext._jsc.sc().makeRDD(scala.asScala(together).toSeq(), tag)
    session: Any = spark._jsparkSession
    return DataFrame(session.createDataFrame(rdd, session.parseDataType(_ROWS.json())), spark)


@dataclass(frozen=True)
class Seats:
    """Where an operator's replicas sit: executors by name, and Spark's location of each."""

    executors: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    asked_at: float = 0.0

    def of(self, replicas: int) -> tuple[str, ...]:
        """The location of every replica, in turn; none where the operator is not placed."""
        if not self.locations:
            return ()
        return tuple(self.locations[i % len(self.locations)] for i in range(replicas))


class Placement:
    """The seats of all operators, and the moves between them. A move is asked for at any time; the
    batch under way ends on the old executors, and the next one starts on the new ones.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: dict[str, Seats] = {}
        self._sitting: dict[str, tuple[Seats, float]] = {}
        self._moves: list[Move] = []

    def ask(self, placement: Mapping[str, Sequence[str]], locations: Mapping[str, str]) -> None:
        """Have operators sit on these executors from their next batch on. Executors without a
        location do not run (yet): an operator all of whose executors are missing stays.
        """
        now = time.time()
        with self._lock:
            for name, executors in placement.items():
                there = tuple(e for e in executors if e in locations)
                if there and there != self._wanted.get(name, Seats()).executors:
                    self._wanted[name] = Seats(there, tuple(locations[e] for e in there), now)

    def seats(self, name: str) -> Seats:
        with self._lock:
            return self._wanted.get(name, Seats())

    def began(self, name: str, seats: Seats, now: float) -> None:
        """A batch begins on these seats: where they are others than before, the operator has
        moved.
        """
        with self._lock:
            before, ended_at = self._sitting.get(name, (seats, now))
            self._sitting[name] = (seats, now)
            if before.executors != seats.executors:
                stood_s = max(0.0, now - max(ended_at, seats.asked_at))
                self._moves.append(Move(name, before.executors, seats.executors, stood_s))

    def ended(self, name: str, now: float) -> None:
        """A batch ended."""
        with self._lock:
            if name in self._sitting:
                self._sitting[name] = (self._sitting[name][0], now)

    def moves(self) -> tuple[Move, ...]:
        """The moves since the last call."""
        with self._lock:
            moves, self._moves = tuple(self._moves), []
            return moves
