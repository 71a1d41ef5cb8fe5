"""Where the state of a stateful operator is: on the executors that the plan names.

Spark's coordinator knows on which executor every state store was opened last, and the tasks of the
next batch prefer that executor. Reporting another one there moves the state: the next batch's tasks
run there and load the store from the checkpoint, and the old executor closes its copy at its next
maintenance. The batch under way ends where it began, so that nothing is lost.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)
_LOCATION = re.compile(r"executor_(?P<host>.+)_(?P<executor>[^_]+)")
_DEFAULT = "default"
_ROCKSDB = ("SSTs", "logs")
"""Folders in which RocksDB keeps files of a store."""


def stores(checkpoint: Path) -> Iterator[tuple[int, int, str]]:
    """(operator, partition, name) of the state stores that a checkpoint holds. A store that has a
    name of its own, as those of a join, is a folder in its partition's. Before the first batch the
    first partition's folder holds the schema and no state.
    """
    for partition in sorted(checkpoint.glob("state/[0-9]*/[0-9]*")):
        operator, number = int(partition.parent.name), int(partition.name)
        inside = [p for p in partition.iterdir() if not p.name.startswith(("_", "."))]
        if not inside:
            continue
        named = [p.name for p in inside if p.is_dir() and p.name not in _ROCKSDB]
        for name in sorted(named) or [_DEFAULT]:
            yield operator, number, name


def move_state(
    spark: SparkSession, query: StreamingQuery, checkpoint: Path, locations: Sequence[str]
) -> int:
    """Have the next batch run on these executors, by Spark's names of them: partition after
    partition in turn. Returns how many stores were assigned: none before the first batch, and none
    on a Spark whose coordinator has another shape, where the state stays.
    """
    try:
        return _assign(spark, query, checkpoint, locations)
    except (Py4JError, TypeError, AttributeError) as error:
        log.warning("the state of query '%s' stays where it is: %s", query.name, error)
        return 0


def _assign(
    spark: SparkSession, query: StreamingQuery, checkpoint: Path, locations: Sequence[str]
) -> int:
    jvm: Any = spark.sparkContext._jvm
    session: Any = spark._jsparkSession
    coordinator = session.sessionState().streamingQueryManager().stateStoreCoordinator()
    root = query._jsq.streamingQuery().resolvedCheckpointRoot()
    run = jvm.java.util.UUID.fromString(str(query.runId))
    state = jvm.org.apache.spark.sql.execution.streaming.state
    nothing = jvm.scala.jdk.javaapi.CollectionConverters.asScala(jvm.java.util.ArrayList()).toSeq()
    moved = 0
    for operator, partition, name in stores(checkpoint):
        store = state.StateStoreId(f"{root}/state", operator, partition, name)
        if seat := _LOCATION.fullmatch(locations[partition % len(locations)]):
            coordinator.reportActiveInstance(
                state.StateStoreProviderId(store, run), seat["host"], seat["executor"], nothing
            )
            moved += 1
    return moved
