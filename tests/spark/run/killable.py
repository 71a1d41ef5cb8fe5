"""A pipeline that a test starts as a process of its own and kills: three operators, a split that is
different at every replay.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from foretide.demo.broker import jars
from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running, kafka, session

EVENTS = 400
PER_BATCH = 25


def declared(servers: str | None = None, topic: str | None = None, edges: str = "") -> Pipeline:
    """Its events come from a topic, where one is named, and its edges are directories, topics, or
    one of each (``"mixed"``).
    """
    cluster = kafka(servers) if servers else None
    p = Pipeline("killable", trigger_s=0.2, edges=cluster if edges == "kafka" else None)
    burst = Load("burst", np.array([float(EVENTS)]), 0.01)
    if servers and topic:
        first = {"schema": "id long", "starting": "earliest", "max_events_per_batch": PER_BATCH}
        p.source("events", kafka(topic, servers, **first))
    else:
        p.source("events", Generator(burst, max_events_per_batch=PER_BATCH))

    @p.operator(inputs="events", outputs={"left": "id long", "right": "id long"})
    def split(event: dict[str, Any]) -> Any:
        return ("left" if os.urandom(1)[0] < 128 else "right"), {"id": event["id"]}

    on_kafka = {"edges": cluster} if edges == "mixed" else {}
    p.operator(inputs="split:left", name="left", **on_kafka)(lambda e: e)
    p.operator(inputs="split:right", name="right")(lambda e: e)
    p.sink("from_left", inputs="left")
    p.sink("from_right", inputs="right")
    return p


if __name__ == "__main__":
    settings = {"spark.jars": ",".join(map(str, jars("spark")))} if len(sys.argv) > 2 else {}
    spark = session("killable", master="local[8]", short_run=True, settings=settings)
    with Running(declared(*sys.argv[2:]), spark, Path(sys.argv[1])) as running:
        running.set_replicas({"split": 2, "left": 2})
        with running.accounts.changed:
            while running.accounts.consumed("split") < EVENTS:
                running.check()
                running.accounts.changed.wait(0.5)
        running.wait()
    spark.stop()
