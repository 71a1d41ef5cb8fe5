"""A pipeline to measure with: the four operators of PA-SPS's linear Twitter application, waiting
instead of burning CPU.

Costs keep the published proportions 1 : 2 : 1.5 : 1, scaled so that a small machine shows many
replicas: a replica that waits needs a slot, not a core.
"""

from __future__ import annotations

import time
from typing import Any

from foretide.load import Load
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.pipeline import Pipeline

COST_S = 0.008
SHARES = {"parse": 1.0, "spam": 2.0, "topic": 1.5, "store": 1.0}


def chain(
    load: Load, after_s: float = 0.0, trigger_s: float = 2.0, cost_s: float = COST_S
) -> Pipeline:
    """Parse, drop spam, find the topic, store: each a function per event that waits its share of
    ``cost_s``.
    """
    p = Pipeline("tweets", trigger_s=trigger_s)
    p.source("tweets", Generator(load, after_s=after_s, keys=50, skew=1.0))
    wait_s = {name: share * cost_s for name, share in SHARES.items()}

    @p.operator(inputs="tweets", schema="id long, user long, score double", max_replicas=12)
    def parse(event: dict[str, Any]) -> dict[str, Any]:
        time.sleep(wait_s["parse"])
        return {"id": event["id"], "user": event["key"], "score": event["value"]}

    @p.operator(inputs="parse", max_replicas=12)
    def spam(event: dict[str, Any]) -> dict[str, Any] | None:
        time.sleep(wait_s["spam"])
        return event if event["score"] < 0.9 else None

    @p.operator(inputs="spam", schema="id long, user long, topic string", max_replicas=12)
    def topic(event: dict[str, Any]) -> dict[str, Any]:
        time.sleep(wait_s["topic"])
        return {
            "id": event["id"],
            "user": event["user"],
            "topic": ("sport", "music", "news")[event["user"] % 3],
        }

    @p.operator(inputs="topic", key="user", max_replicas=12)
    def store(event: dict[str, Any]) -> dict[str, Any]:
        time.sleep(wait_s["store"])
        return event

    p.sink("stored", inputs="store")
    return p
