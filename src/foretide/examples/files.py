"""Files in a folder as a source, and one slow operator: the smallest pipeline of one's own.

Every file in ``inbox`` holds events as JSON lines. ``score`` waits 30 ms per event, as if it asked
a service, so that one replica processes about 30 events/s.
Run it: foretide run files.py:pipeline --target 10, with foretide examples feed.py writing the files
"""

import os
import time

from foretide.spark import Pipeline

pipeline = Pipeline("files", trigger_s=1.0)


def inbox(spark):
    os.makedirs("inbox", exist_ok=True)
    reader = spark.readStream.schema("id long, at double, text string")
    return reader.option("maxFilesPerTrigger", 10).json("inbox")


pipeline.source("inbox", inbox, stamp="at")


@pipeline.operator(inputs="inbox", schema="id long, score double", max_replicas=8)
def score(event):
    time.sleep(0.03)
    return {"id": event["id"], "score": len(event["text"]) / 10}


pipeline.sink("scores", inputs="score")
