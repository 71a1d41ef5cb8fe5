"""What measuring costs inside a task: the same events with every 10th timed (the default), with
every one timed, and with none.

No Spark: the task body is called directly. The share of busy time that measuring takes should stay
under 2 % at the default. Usage: python benchmarks/measuring.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from foretide.spark.worker.tasks import run_events
from foretide.spark.worker.work import Work

EVENTS, ROUNDS = 20_000, 15


def work(event: dict[str, Any]) -> dict[str, Any]:
    """About five microseconds: a cheap event, the hardest case."""
    n = event["id"]
    for _ in range(60):
        n = (n * 1103515245 + 12345) % 2147483648
    return {"id": n}


def once(sample_every: int, batch: pa.RecordBatch) -> float:
    schema = pa.schema([("id", pa.int64()), ("_at", pa.float64())])
    body = run_events(
        Work("bench", work, schema, {None: frozenset({"id"})}, sample_every=sample_every),
        lambda reports: None,
    )
    before = time.process_time()
    for _ in body(iter([batch])):
        pass
    return time.process_time() - before


def main() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"id": np.arange(EVENTS), "_at": np.random.default_rng(0).random(EVENTS)}
    )
    choices = {"none": 10**9, "every 10th": 10, "every one": 1}
    times: dict[str, list[float]] = {name: [] for name in choices}
    for _ in range(ROUNDS):
        for name, every in choices.items():
            times[name].append(once(every, batch))
    base = min(times["none"])
    for name, found in times.items():
        print(
            f"timed {name:10s}: {min(found) / EVENTS * 1e6:.2f} us of CPU per event, "
            f"{min(found) / base - 1:+.1%}"
        )


if __name__ == "__main__":
    main()
