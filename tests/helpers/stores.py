"""Runs the pipeline of ``tests/spark/edge/on_store.py`` twice on one store: a first life that ends
in the middle, and a second one with another folder, which must find all it needs in the store.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "spark" / "edge" / "on_store.py"
KEPT = {"edges", "checkpoints", "replicas.json", "pipeline.json", "kafka.json"}


def check_two_lives(
    folder: Path,
    servers: str,
    store: str,
    settings: Mapping[str, str],
    environment: Mapping[str, str],
) -> None:
    """Every event is in the sink once, and the state counted it once."""
    for life, how_much, ended in [("one", "some", 9), ("two", "all", 0)]:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), str(folder / life), servers, store, how_much,
             json.dumps(dict(settings))],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environment},
            capture_output=True, text=True, timeout=500, check=False,
        )  # fmt: skip
        assert done.returncode == ended, done.stderr[-3000:]
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert seen["ids"] == list(range(200))
    assert seen["counted"] == 200
    assert not {f.name for f in (folder / "two").iterdir()} & KEPT
