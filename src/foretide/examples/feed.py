"""Write events into a folder, one file of JSON lines per second: a load to try a pipeline with.

Run it: python feed.py inbox 60 300 (60 events/s for 300 seconds)
"""

import json
import os
import sys
import time


def feed(folder, rate, seconds):
    """Write a file per second; a file appears whole or not at all."""
    os.makedirs(folder, exist_ok=True)
    start = time.time()
    for second in range(seconds):
        now = time.time()
        name = f"{now:.3f}.json"
        with open(os.path.join(folder, f".{name}"), "w") as file:
            for i in range(rate):
                event = {"id": second * rate + i, "at": now, "text": "hello world"}
                file.write(json.dumps(event) + "\n")
        os.rename(os.path.join(folder, f".{name}"), os.path.join(folder, name))
        time.sleep(max(0.0, start + second + 1 - time.time()))


if __name__ == "__main__":
    feed(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
