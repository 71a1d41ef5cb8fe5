"""Stopping a query between two micro-batches. Spark would cut a batch off in the middle and print
long traces about it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

STEP_S = 0.02


class CutOff(Exception):
    """A batch that a stop ended. Spark knows it by this text, and ends the query without an
    error.
    """

    def __init__(self, operator: str) -> None:
        super().__init__(
            f"py4j.protocol.Py4JJavaError: An error occurred while calling {operator}: "
            "java.lang.InterruptedException"
        )


class Brake:
    """Of one query. A batch that would start during a stop waits here and comes again at the next
    start; one that is in flight may come to its end first.
    """

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self._waits = threading.Event()

    def hold(self, query: Callable[[], StreamingQuery | None]) -> None:
        """On the batch's thread: wait until the query was told to stop, then end the batch before
        it did anything.
        """
        self._waits.set()
        while (found := query()) is None or found.isActive:
            time.sleep(STEP_S)
        raise CutOff(self.operator)

    def stop(self, query: StreamingQuery, until: float) -> None:
        """Stop when no batch is at work, or at ``until`` (monotonic): one that is cut off then
        comes again, too.
        """
        while (
            query.isActive
            and query.status["isTriggerActive"]
            and not self._waits.is_set()
            and time.monotonic() < until
        ):
            time.sleep(STEP_S)
        query.stop()
