"""The driver is killed at five seeded moments; every event reaches the sinks exactly once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from foretide.spark.edge.checkpoint import Checkpoint
from foretide.spark.edge.inbox import Inbox

pytestmark = pytest.mark.spark

EVENTS = 400
LIMIT_S = 240.0


def steps(path: Path) -> int:
    """Batches delivered and staged so far, over all operators: grows with every step a pipeline
    takes.
    """
    found = 0
    for outbox in (path / "edges").glob("*"):
        delivered = [int(f.name[2:]) for f in outbox.glob("b-*")]
        found += 2 * (max(delivered, default=-1) + 1) + sum(1 for _ in outbox.glob(".staging-*"))
    return found


def last_taken(path: Path, consumer: str) -> list[Path]:
    """The files of a consumer's last batch: they go when its next one starts."""
    checkpoint, inbox = (
        Checkpoint(path / "checkpoints" / consumer),
        Inbox(path / "edges", consumer, ["split"]),
    )
    last = checkpoint.last_batch()
    assert last is not None
    offsets = checkpoint.offsets(last)
    return [
        Path(piece.name)
        for piece in inbox.between(offsets.start[0] or inbox.start(), offsets.end[0])["split"]
    ]


def test_every_event_arrives_exactly_once_after_five_kills(tmp_path: Path) -> None:
    moments = np.random.default_rng(20261115).integers(2, 9, size=5)
    script, pause = (
        [sys.executable, str(Path(__file__).with_name("killable.py")), str(tmp_path)],
        0.01,
    )
    with open(tmp_path / "log", "ab") as log:
        for moment in moments:
            process = subprocess.Popen(script, start_new_session=True, stdout=log, stderr=log)
            until, before = time.monotonic() + LIMIT_S, steps(tmp_path)
            while (
                steps(tmp_path) < before + moment
                and process.poll() is None
                and time.monotonic() < until
            ):
                time.sleep(pause)
            assert process.poll() is None, "the pipeline ended before it was killed"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        subprocess.run(script, check=True, stdout=log, stderr=log, timeout=LIMIT_S)
    ids = [
        i
        for sink in ("left", "right")
        for f in (tmp_path / "output" / f"from_{sink}").glob("*.parquet")
        for i in pq.ParquetFile(f).read(columns=["id"])["id"].to_pylist()
    ]
    assert sorted(ids) == list(range(EVENTS))
    left_over = set((tmp_path / "edges").glob("*/b-*/to.*/*.parquet"))
    assert left_over == {f for name in ("left", "right") for f in last_taken(tmp_path, name)}, (
        "edges are cleaned up behind consumers"
    )
