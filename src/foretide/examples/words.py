"""Spell numbers and measure the words: a generated load, two operators, a sink.

``measure`` asks a slow service, so it needs one replica at the load's bottom and five at its top.
Run it: foretide run foretide.examples.words:pipeline --mode act --target 10
"""

import time

from foretide.load import load
from foretide.spark import Pipeline

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LOOKUP_S = 0.02

pipeline = Pipeline("words", trigger_s=1.0)
pipeline.source("numbers", load("erratic", scale=0.5))


@pipeline.operator(inputs="numbers", schema="id long, word string", max_replicas=8)
def spell(event):
    return [{"id": event["id"], "word": DIGITS[int(d)]} for d in str(event["key"])]


@pipeline.operator(
    inputs={"spell": "word <> 'zero'"}, schema="id long, length int", key="word", max_replicas=8
)
def measure(event):
    time.sleep(LOOKUP_S)
    return {"id": event["id"], "length": len(event["word"])}


pipeline.sink("lengths", inputs="measure")
