"""A pipeline that a test starts as a process of its own and kills: three operators, a split that is
different at every replay.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running, kafka, session

EVENTS = 400


def declared(servers: str | None = None) -> Pipeline:
    """Its edges are directories, or topics at ``servers``."""
    p = Pipeline("killable", trigger_s=0.2, edges=kafka(servers) if servers else None)
    p.source(
        "events", Generator(Load("burst", np.array([float(EVENTS)]), 0.01), max_events_per_batch=25)
    )

    @p.operator(inputs="events", outputs={"left": "id long", "right": "id long"})
    def split(event: dict[str, Any]) -> Any:
        return ("left" if os.urandom(1)[0] < 128 else "right"), {"id": event["id"]}

    p.operator(inputs="split:left", name="left")(lambda e: e)
    p.operator(inputs="split:right", name="right")(lambda e: e)
    p.sink("from_left", inputs="left")
    p.sink("from_right", inputs="right")
    return p


if __name__ == "__main__":
    spark = session("killable", master="local[8]", short_run=True)
    with Running(declared(*sys.argv[2:3]), spark, Path(sys.argv[1])) as running:
        running.set_replicas({"split": 2, "left": 2})
        running.wait()
    spark.stop()
