"""What ``durability = "power"`` costs: delivering batches with and without syncing them to the
disk, alternating in one run.

A batch is what an operator delivers: Parquet files of some events for one reader, a manifest, one
rename, and Spark's own two small log files beside it. With "power" everything is on the disk before
the rename, and the rename before the next batch begins. Prints milliseconds per batch and the share
of a trigger of 2 s. Usage: python benchmarks/durability.py [BATCHES] [EVENTS] [FOLDER]
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from foretide.spark.edge.checkpoint import Checkpoint
from foretide.spark.edge.outbox import Outbox, tidy
from foretide.spark.edge.protocol import Durability, Manifest

FILES, TRIGGER_S = 4, 2.0


def batch_s(outbox: Outbox, batch: int, table: pa.Table) -> float:
    """Seconds that one batch takes from its first file to its rename."""
    log = outbox.root.with_name(f"log-{outbox.root.name}")
    begun = time.perf_counter()
    for kind in ("offsets", "commits"):
        (log / kind).mkdir(parents=True, exist_ok=True)
        (log / kind / str(batch)).write_text('v1\n{"batchTimestampMs":1}\n{"a":"1.1"}')
    if outbox.power:
        Checkpoint(log).settle(batch)
    staging = outbox.stage(batch)
    (staging / "to.b").mkdir()
    for i in range(FILES):
        pq.write_table(table, staging / "to.b" / f"part-{i}.parquet")
    files = {"to.b": tidy(staging / "to.b")}
    outbox.deliver(staging, Manifest(batch, 0.0, 1, {}, {"to.b": table.num_rows * FILES}, files))
    return time.perf_counter() - begun


def main() -> None:
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    events = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000
    where = sys.argv[3] if len(sys.argv) > 3 else None
    root = Path(tempfile.mkdtemp(prefix="foretide-durability-", dir=where))
    table = pa.table({"id": list(range(events // FILES)), "text": ["x" * 40] * (events // FILES)})
    took: dict[Durability, list[float]] = {"process": [], "power": []}
    boxes = {d: Outbox(root / d, d) for d in took}
    for box in boxes.values():
        box.create()
    try:
        for batch in range(batches):
            for durability, seconds in took.items():
                seconds.append(batch_s(boxes[durability], batch, table))
    finally:
        shutil.rmtree(root)
    middle = {d: 1e3 * statistics.median(s[5:]) for d, s in took.items()}
    most = {d: 1e3 * max(s[5:]) for d, s in took.items()}
    for d in took:
        print(f"{d:8s} {middle[d]:6.1f} ms per batch of {events} events, at most {most[d]:.1f} ms")
    more = middle["power"] - middle["process"]
    print(
        f"power costs {more:.1f} ms more per batch and operator: {more / TRIGGER_S / 10:.1f} % of "
        f"a trigger of {TRIGGER_S:g} s"
    )


if __name__ == "__main__":
    main()
