"""Count words by language: a load, two operators, a sink. Run it with: foretide run
examples/words.py:pipeline --mode act
"""

from foretide.load import load
from foretide.spark import Pipeline

pipeline = Pipeline("words", trigger_s=1.0)
pipeline.source("numbers", load("erratic", scale=0.2))


@pipeline.operator(inputs="numbers", schema="id long, word string", max_replicas=8)
def spell(event):
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return [{"id": event["id"], "word": words[int(d)]} for d in str(event["key"])]


@pipeline.operator(
    inputs={"spell": "word <> 'zero'"}, schema="id long, length int", key="word", max_replicas=8
)
def measure(event):
    return {"id": event["id"], "length": len(event["word"])}


pipeline.sink("lengths", inputs="measure")
